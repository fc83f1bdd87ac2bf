-- One row per class of evidence that has a window of its own: the configuration's, else the reference's.
select
    evidence_class,
    before_seconds,
    after_seconds
from settings.evidence_windows
union all
select
    reference_windows.evidence_class,
    reference_windows.before_seconds,
    reference_windows.after_seconds
from reference.evidence_windows as reference_windows
anti join settings.evidence_windows as configured
    on reference_windows.evidence_class = configured.evidence_class
