-- One plain job on PostgreSQL, with its place and its event: a function of the server does it.

-- name: add_one_alike
-- What add_alike says of a single job, as a whole transaction with its trace. What differs from one job of
-- a model to the next stands first; then where it is to stand if the last commit of all is the one that is given.
select headway_submit(:token, :params, :at, :last, :id, :ahead, :space, :key, :busy, :traces, :last_word, :gap, :name, :type,
  :priority, :slug, :labels, :retry, :env_digest, :on_finish, :submitted_by, :stage, :queue, :told)
