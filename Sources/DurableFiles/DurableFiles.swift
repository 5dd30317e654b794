// DurableFiles
