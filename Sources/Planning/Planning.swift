// Planning
