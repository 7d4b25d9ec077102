-- The first job of a chain is found by its id, which is the chain's. So only the few that came after it
-- stand in the index: a start and an end change one tree less, each.
drop index jobs_chain;
create index jobs_chain on jobs (chain, id) where chain <> id;
