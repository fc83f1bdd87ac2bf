-- One row per GPU, by its UUID or serial number, and stay at a place: a GPU that was swapped leaves its node.
-- A place whose listings name no GPU has one row without.
select
    stays.cluster,
    stays.node,
    stays.gpu_index,
    stays.device,
    stays.uuid,
    stays.serial,
    stays.model,
    places.rack,
    places.pod,
    places.switch,
    stays.valid_from,
    stays.valid_to,
    stays.record_id
from staging.fleet__gpu_stays as stays
left join staging.fleet__places as places
    on stays.cluster = places.cluster and stays.node = places.node
