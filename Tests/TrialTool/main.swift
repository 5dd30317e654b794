import Godwit

// An executable of a team's own, with policies: what the trials and the benchmark drive.

await GodwitTool.main(policies: [
  "AccountPolicy": AccountPolicy.self,
  "BucketCostPolicy": BucketCostPolicy.self,
  "DebitPolicy": DebitPolicy.self,
  "DefaultPolicy": EntityMigrationPolicy.self,
  "DefaultShardPolicy": DefaultShardPolicy.self,
  "LabelPolicy": LabelPolicy.self,
  "ProfilePolicy": ProfilePolicy.self,
  "SheetPolicy": SheetPolicy.self,
  "ThreeAttributesPolicy": ThreeAttributesPolicy.self,
])
