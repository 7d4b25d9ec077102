-- name: take_reservation_id
-- changes: marks
update marks set value = value + 1 where name = 'next_reservation_id' returning value - 1

-- name: add_reservation
-- changes: reservations
insert into reservations (id, token, holder, note, host_id, pid, occupies, inside, requested_at,
  granted_at, expires_at)
values (:id, :token, :holder, :note, :host_id, :pid, :occupies, :inside, :requested_at, :granted_at,
  :expires_at)

-- name: reservations (hot)
-- In the order in which they get slots.
select $RESERVATION from reservations order by id

-- name: reservation_by_token
select $RESERVATION from reservations where token = :token

-- name: grant_reservation
-- changes: reservations
update reservations set granted_at = :at, inside = :inside where token = :token and granted_at is null

-- name: renew_reservation
-- changes: reservations
update reservations set expires_at = :expires_at where token = :token

-- name: release_reservation
-- changes: reservations
delete from reservations where token = :token

-- name: expire_reservations
-- changes: reservations
delete from reservations where expires_at <= :now and token in $TEXTS(:tokens) returning $RESERVATION
