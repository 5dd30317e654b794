import Godwit

// `godwit` with this team's policies: the same commands, options and exit codes. The names are
// those that the mapping models give.
await GodwitTool.main(policies: [
  "AddressPolicy": AddressPolicy.self,
  "AuthorPolicy": AuthorPolicy.self,
  "BorrowerPolicy": BorrowerPolicy.self,
  "IdentifierPolicy": IdentifierPolicy.self,
  "JournalPolicy": JournalPolicy.self,
  "PaymentAuditPolicy": PaymentAuditPolicy.self,
  "PersonNamePolicy": PersonNamePolicy.self,
  "PublisherPolicy": PublisherPolicy.self,
  "ShelfKindPolicy": ShelfKindPolicy.self,
  "SpamPolicy": SpamPolicy.self,
  "TagMergePolicy": TagMergePolicy.self,
])
