-- The numbers of events count within an epoch: random, and another one after each restore.
insert into marks (name, value) values ('event_epoch', 0);
