-- A job that runs touches fewer trees. It has one claim at a time, and one that was undone leaves no row:
-- so a claim is found by its job, and its token needs no index.

create table claims_of_jobs (
  job_id        $ID,
  token         text not null,
  state         text not null check (state in ('live', 'ended', 'gone')),
  slot          bigint not null,
  worker_id     text not null,
  host_id       text not null,
  home          text not null,
  boot_id       text not null,
  folder        text not null,
  claimed_at    bigint not null,
  borrowed_from bigint,
  probe         bigint not null,
  lease_until   bigint,
  function_host text,
  occupies      text
);
insert into claims_of_jobs
select job_id, token, state, slot, worker_id, host_id, home, boot_id, folder, claimed_at, borrowed_from,
  probe, lease_until, function_host, occupies
from claims where true order by claimed_at desc, state desc
on conflict do nothing;
drop table claims;
alter table claims_of_jobs rename to claims;
create unique index claims_one_live_per_slot on claims (slot) where state = 'live';
create index claims_unproven on claims (job_id) where state = 'ended';

-- Whether anybody waits for the end of another at all.
create index edges_pending on edges (chain) where mark = 'pending';
