import Godwit

/// Overrides nothing, like the base class, and lets its entity be cut.
final class DefaultShardPolicy: EntityMigrationPolicy {
  override class var scope: Scope { .shard }
}
