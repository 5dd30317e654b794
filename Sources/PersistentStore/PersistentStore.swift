// PersistentStore
