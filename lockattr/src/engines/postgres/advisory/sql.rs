//! The SQL. Each answer begins with the server process, which must be that of the connection.

/// Tries to take one lock. Returns the fencing number if it was acquired.
pub(super) const TRY_ONE: &str = "
    select pg_backend_pid(), case
        when pg_backend_pid() <> $3 then null
        when case
            when $2 then pg_try_advisory_lock_shared(hashtextextended($1, 0))
            else pg_try_advisory_lock(hashtextextended($1, 0))
        end then case
            -- A message in the log, so that the token is on disk before the client gets it: a server
            -- that crashes would give the same tokens again.
            when pg_logical_emit_message(true, 'lockattr', '') is not null
            then pg_current_xact_id()::text::bigint
        end
    end";

/// Tries to take locks: which were acquired, and the fencing number if any was. One number is
/// enough for the claims of a statement, because no two of them name the same lock. It is drawn
/// after the last lock was acquired, so an earlier holder of any of them has a smaller one.
pub(super) const TRY_MANY: &str = "
    with tried as materialized (select array(
        select case
            when pg_backend_pid() <> $3 then false
            when shared then pg_try_advisory_lock_shared(hashtextextended(name, 0))
            else pg_try_advisory_lock(hashtextextended(name, 0))
        end
        from unnest($1::text[], $2::boolean[]) with ordinality as requested (name, shared, nth)
        order by nth
    ) as taken)
    select pg_backend_pid(), taken, case when true = any (taken) then
        case when pg_logical_emit_message(true, 'lockattr', '') is not null
            then pg_current_xact_id()::text::bigint end
    end from tried";

/// Waits for one lock. Returns the fencing number, the server's clock, and whether others wait.
pub(super) const LOCK_ONE: &str = "
    select pg_backend_pid(), case
        when pg_backend_pid() <> $3 then null
        when case
            when $2 then pg_advisory_lock_shared(hashtextextended($1, 0)) is not null
            else pg_advisory_lock(hashtextextended($1, 0)) is not null
        end then case
            when pg_logical_emit_message(true, 'lockattr', '') is not null
            then pg_current_xact_id()::text::bigint
        end
    end, (extract(epoch from clock_timestamp()) * 1000000)::bigint,
    exists (
        select from pg_locks
        where hashtextextended($1, 0) = classid::bigint << 32 | objid::bigint
            and locktype = 'advisory' and objsubid = 1 and not granted
            and database = (select oid from pg_database where datname = current_database())
    )";

/// Waits for all locks in the order of their numbers, and takes the fencing number at the end.
pub(super) const LOCK_MANY: &str = "
    with requested as materialized (
        select hashtextextended(name, 0) as number from unnest($1::text[]) as name order by number
    ), locked as materialized (
        select count(*) filter (where case
            when pg_backend_pid() <> $3 then false
            when $2 then pg_advisory_lock_shared(number) is not null
            else pg_advisory_lock(number) is not null
        end) as locks from (select number from requested offset 0) as in_order
    )
    select pg_backend_pid(), case when pg_logical_emit_message(true, 'lockattr', '') is not null
            then pg_current_xact_id()::text::bigint end,
        (extract(epoch from clock_timestamp()) * 1000000)::bigint,
        exists (
            select from pg_locks join requested on number = classid::bigint << 32 | objid::bigint
            where locktype = 'advisory' and objsubid = 1 and not granted
                and database = (select oid from pg_database where datname = current_database())
        )
    from locked where locks = cardinality($1)";

/// Releases one lock, and returns whether it was held.
pub(super) const UNLOCK_ONE: &str = "
    select pg_backend_pid(), case
        when pg_backend_pid() <> $3 then false
        when $2 then pg_advisory_unlock_shared(hashtextextended($1, 0))
        else pg_advisory_unlock(hashtextextended($1, 0))
    end";

/// Releases locks, and returns for each whether it was held.
pub(super) const UNLOCK_MANY: &str = "
    select pg_backend_pid(), array(
        select case
            when pg_backend_pid() <> $3 then false
            when shared then pg_advisory_unlock_shared(hashtextextended(name, 0))
            else pg_advisory_unlock(hashtextextended(name, 0))
        end
        from unnest($1::text[], $2::boolean[]) with ordinality as requested (name, shared, nth)
        order by nth
    )";

/// For each lock, whether this session holds it, and whether others wait for it.
pub(super) const HELD_AND_CONTENDED: &str = "
    with locks as materialized (
        select pid, granted, classid::bigint << 32 | objid::bigint as number from pg_locks
        where locktype = 'advisory' and objsubid = 1
            and database = (select oid from pg_database where datname = current_database())
    )
    select pg_backend_pid(), array_agg(
        number in (select number from locks where granted and pid = pg_backend_pid())
        order by nth
    ), array_agg(
        number in (select number from locks where not granted) order by nth
    ) from (
        select hashtextextended(name, 0) as number, nth
        from unnest($1::text[]) with ordinality as requested (name, nth)
    ) as requested";

/// Whether the session with process $2 waits for the locks, the server's clock, and a holder of one
/// of them. If it waits, or $2 is 0 because the claim waits for a session, notifies the holders.
pub(super) const QUEUE_STATUS: &str = "
    with requested as materialized (
        select name, hashtextextended(name, 0) as number from unnest($1::text[]) as name
    ), locks as materialized (
        select pid, granted, classid::bigint << 32 | objid::bigint as number from pg_locks
        where locktype = 'advisory' and objsubid = 1
            and database = (select oid from pg_database where datname = current_database())
    ), queue_status as materialized (
        select exists (select from locks where pid = $2 and not granted) as now
    ), notified as materialized (
        select count(pg_notify('lockattr_session_' || pid, name))
        from locks join requested using (number), queue_status
        where granted and pid <> $2 and (queue_status.now or $2 = 0)
    )
    select pg_backend_pid(), (extract(epoch from clock_timestamp()) * 1000000)::bigint, queue_status.now,
        (select pid from locks join requested using (number) where granted and pid <> $2 limit 1)
    from queue_status, notified";

/// The holder of a lock: its process, when that began, and the name and address of its client.
pub(super) const HOLDER: &str = "
    select pg_backend_pid(), pid, date_part('epoch', backend_start)::text, application_name,
        host(client_addr)
    from pg_locks join pg_stat_activity using (pid)
    where locktype = 'advisory' and objsubid = 1 and granted
        and classid::bigint << 32 | objid::bigint = hashtextextended($1, 0)
        and database = (select oid from pg_database where datname = current_database())
    limit 1";

/// All holders of a lock: their processes, and when they began.
pub(super) const HOLDERS: &str = "
    select pg_backend_pid(), pid, date_part('epoch', backend_start)::text
    from pg_locks join pg_stat_activity using (pid)
    where locktype = 'advisory' and objsubid = 1 and granted
        and classid::bigint << 32 | objid::bigint = hashtextextended($1, 0)
        and database = (select oid from pg_database where datname = current_database())";

/// Ends the session with process $2, if it holds the lock.
pub(super) const END: &str = "
    select pg_backend_pid(), pg_terminate_backend(pid) from pg_locks
    where locktype = 'advisory' and objsubid = 1 and granted and pid = $2
        and classid::bigint << 32 | objid::bigint = hashtextextended($1, 0)
        and database = (select oid from pg_database where datname = current_database())";

/// The prefix of the channel on which a session is notified of waiters for its locks.
pub(super) const CHANNEL: &str = "lockattr_session_";

/// The number of a lock's name.
pub(super) const NUMBER: &str = "select pg_backend_pid(), hashtextextended($1, 0)";

/// The number of an acquisition, counted as in `TRY_ONE` and `LOCK_ONE`.
pub(super) const COUNT: &str = "case
    when pg_logical_emit_message(true, 'lockattr', '') is not null
    then pg_current_xact_id()::text::bigint
end";
