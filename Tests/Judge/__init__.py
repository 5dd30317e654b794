"""A judge of migrated stores that comes with the repository: it reads models as Xcode writes them and stores
by Core Data's documented layout, in Python, and shares no code with Godwit.

It knows less than an oracle made from Core Data's stores: no compiled models, no composite attributes, no
derived values, no text of the schema. What it cannot judge it says.
"""
