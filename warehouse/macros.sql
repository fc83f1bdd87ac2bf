-- Macros for models and for every client; they stand in the published file. Attached under another name, say
-- `use <name>` first, so that reference.poisson_quantiles is found. macros.toml has their meaning and an example each.

-- Lower exact 95 % limit of a Poisson mean, given the count. Above the table: Wilson and Hilferty's approximation.
create macro poisson_lower(events) as case
    when events > 2000 then events * (1 - 1 / (9 * events) - 1.959964 / (3 * sqrt(events))) ** 3
    else (
        select any_value(q.lower95)
        from reference.poisson_quantiles as q
        where q.n = events
    )
end;

-- Upper exact 95 % limit of a Poisson mean, given the count.
create macro poisson_upper(events) as case
    when events > 2000
        then (events + 1) * (1 - 1 / (9 * (events + 1)) + 1.959964 / (3 * sqrt(events + 1))) ** 3
    else (
        select any_value(q.upper95)
        from reference.poisson_quantiles as q
        where q.n = events
    )
end;

-- Both limits of a rate: events per unit of exposure; without an exposure, of the mean count.
create macro poisson_interval(events, exposure := 1) as {
    'lower': poisson_lower(events) / nullif(exposure, 0),
    'upper': poisson_upper(events) / nullif(exposure, 0)
};

-- Mean time to interruption, hours; null without an interruption.
create macro mtti(hours, events) as hours / nullif(events, 0);

-- Its exact 95 % limits, hours. Few events mean a long upper limit; without any there is none.
create macro mtti_interval(hours, events) as {
    'lower': hours / nullif(poisson_upper(events), 0),
    'upper': hours / nullif(poisson_lower(events), 0)
};

-- GPU-hours of GPU-seconds.
create macro gpu_hours(gpu_seconds) as gpu_seconds / 3600.0;

-- Wilson's 95 % limits of a share: n of a total.
create macro wilson_lower(n, total) as
(
    n / nullif(total, 0) + 1.920729 / nullif(total, 0)
    - 1.959964 * sqrt(n / nullif(total, 0) * (1 - n / nullif(total, 0)) / nullif(total, 0) + 0.960365 / (total * total))
)
/ (1 + 3.841459 / nullif(total, 0));

create macro wilson_upper(n, total) as
(
    n / nullif(total, 0) + 1.920729 / nullif(total, 0)
    + 1.959964 * sqrt(n / nullif(total, 0) * (1 - n / nullif(total, 0)) / nullif(total, 0) + 0.960365 / (total * total))
)
/ (1 + 3.841459 / nullif(total, 0));
