import Godwit

// An executable with a team's own code is the same: it registers that code first.
await GodwitTool.main()
