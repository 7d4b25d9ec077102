update marks set value = 1 + floor(random() * 281474976710655)::bigint where name = 'event_epoch';
