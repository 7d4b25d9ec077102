-- name: templates_by_name
select name, document, created_at, created_by, archived_at from templates
where name in $TEXTS(:names)

-- name: all_templates
select name, document, created_at, created_by, archived_at from templates order by name

-- name: put_template
-- changes: templates
insert into templates (name, document, created_at, created_by)
values (:name, :document, :created_at, :created_by)
on conflict (name) do update set document = excluded.document, created_at = excluded.created_at,
  created_by = excluded.created_by, archived_at = null

-- name: archive_template
-- changes: templates
update templates set archived_at = :at where name = :name and archived_at is null
