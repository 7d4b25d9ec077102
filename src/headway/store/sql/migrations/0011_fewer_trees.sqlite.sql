create trigger jobs_take_their_first_event after delete on jobs when old.first_event is not null
begin
  delete from events where seq = old.first_event;
end;

-- Of a list of more than two in a check SQLite makes a table, each time that a row is written. A check says
-- nothing about how rows are stored, so its text may be exchanged where it stands.
pragma writable_schema = on;
update sqlite_schema set sql = replace(replace(sql,
  'check (status in (
    ''queued'', ''waiting_on_deps'', ''waiting_on_approval'', ''waiting_on_locks'', ''running'', ''succeeded'',
    ''failed'', ''skipped'', ''cancelled'', ''blocked_by_dependency'', ''blocked_by_approval''))',
  'check (
    status = ''queued'' or status = ''running'' or status = ''succeeded'' or status = ''failed'' or
    status = ''waiting_on_deps'' or status = ''waiting_on_locks'' or status = ''waiting_on_approval'' or
    status = ''skipped'' or status = ''cancelled'' or
    status = ''blocked_by_dependency'' or status = ''blocked_by_approval'')'),
  'check (stage in (''woken'', ''ready'', ''filed''))',
  'check (stage = ''woken'' or stage = ''ready'' or stage = ''filed'')')
where type = 'table' and name = 'jobs';
update sqlite_schema set sql = replace(sql,
  'check (status in (''COMPLETED'', ''FAILED'', ''SKIPPED''))',
  'check (status = ''COMPLETED'' or status = ''FAILED'' or status = ''SKIPPED'')')
where type = 'table' and name = 'runs';
update sqlite_schema set sql = replace(sql,
  'check (state in (''live'', ''ended'', ''gone''))',
  'check (state = ''live'' or state = ''ended'' or state = ''gone'')')
where type = 'table' and name = 'claims';
update sqlite_schema set sql = replace(sql,
  'check (mark in (''pending'', ''satisfied'', ''failed''))',
  'check (mark = ''pending'' or mark = ''satisfied'' or mark = ''failed'')')
where type = 'table' and name = 'edges';
pragma writable_schema = reset;
