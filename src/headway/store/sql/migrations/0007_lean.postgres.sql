-- A run is written twice; with room on its page the second time touches no index.
alter table runs set (fillfactor = 50);
