-- One instance at a time: `if not exists` can fail if two run at once.
select pg_advisory_xact_lock(hashtext('axum-sqlx'));
-- `fence` is the fencing token of the row's last writer.
create table if not exists stock (product bigint primary key, quantity int not null, fence bigint not null);
create table if not exists orders (product bigint not null, quantity int not null);
create table if not exists reservations (product bigint not null);
