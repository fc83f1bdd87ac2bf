"""The tables of the landing manifest."""

VERSION = 2

SCHEMA = """
create table files (
  path text primary key, size integer not null, mtime_ns integer not null, inode integer not null
) without rowid;
create table pieces (
  export_id text primary key, path text not null, source text, cluster text,
  byte_offset integer not null, byte_length integer not null, sha256 text,
  collected_at text not null, first_line integer not null,
  lines integer, lines_used integer, lines_ignored integer, lines_rejected integer, ignored_by text not null,
  status text not null, message text,
  is_tail integer not null, is_open integer not null, is_current integer not null, is_lost integer not null,
  settings text not null, batch text not null
) without rowid;
create index pieces_path on pieces (path);
create index pieces_batch on pieces (batch);
create table parts (path text primary key, "table" text not null, rows integer not null, size_bytes integer not null)
  without rowid;
create table part_batches (part text not null, batch text not null, primary key (part, batch)) without rowid;
create index part_batches_batch on part_batches (batch);
create table counters (name text primary key, value integer not null) without rowid;
insert into counters values ('batch', 0);
"""
PULLS = """
insert into counters values ('content', 0), ('manifest', abs(random()));
create table pulls (
  source text not null, window_start text not null, window_end text not null,
  status text not null, pulled_at text not null, tries integer not null, path text, sha256 text, byte_length integer,
  settings text not null, message text,
  primary key (source, window_start, window_end)
) without rowid;
"""
