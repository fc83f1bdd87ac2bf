-- One row: how long after an end anything may still count for it, seconds. The longest of all windows, and a day.
select
    86400 + greatest(
        any_value(attribution.after_seconds),
        any_value(attribution.maintenance_after_seconds),
        any_value(timing.left_out_seconds),
        max(own.after_seconds),
        604800 -- a later word on an outage
    ) as seconds
from settings.attribution as attribution
cross join reference.evidence_timing as timing
left join intermediate.attribution__own_windows as own
    on true
