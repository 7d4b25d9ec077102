-- Function jobs: which process makes a call, what functions a host knows, and what they return.

alter table claims add column function_host text;  -- the token of that process; null for a command

create table tasks_known (
  host_id text primary key,
  names   text not null,
  trouble text,
  at      bigint not null
);

-- A result is kept if it is not null: most are.
create table results (
  job_id $ID,
  value  text not null
);

create table progress (
  job_id   $ID,
  fraction text not null,
  told     text not null,
  at       bigint not null
);
