update marks set value = 1 + abs(random() % 281474976710655) where name = 'event_epoch';
