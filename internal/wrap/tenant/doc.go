// Package tenant keeps tenants apart on one driver.
//
// # The story
//
// A [Set] is a driver that tenants share, beside a store that knows what is
// whose. [Set.Driver] gives a tenant a paddock.Driver of its own: it makes, sees,
// opens, lists and removes this tenant's sandboxes and snapshots, and of another's
// it says the same as of what never was. A name is another matter: IDs are names
// of hosts too, and so one space. Whoever asks for a name in use is told Exists,
// whoever has it; who wants nothing known leaves the ID empty, and gets a name
// that nobody can guess.
//
// # Nothing is left over
//
// The owner is written down before a sandbox is made, and taken out after it was
// removed. So whenever the server dies, every sandbox is either known to be whole,
// or known to be halfway: [Set.Adopt] removes the latter when the server begins
// again. A sandbox that its driver has lost is shown as dead, with the reason,
// until its tenant removes it.
//
// Each sandbox carries a label, [Label], with the name of the store, which nobody
// sees through a tenant's driver. One that carries this store's name, and that the
// store does not know, is of a time that the store has forgotten (it was restored
// from a copy): nobody could ever reach it, and Adopt removes it. All others of the
// driver are left alone, and so is what a server of another place made. A record opens
// and removes no sandbox but the one that carries its mark, whatever has its name.
//
// Of a snapshot the driver chooses the name, so it is written down afterwards. A
// crash between the two leaves a snapshot that nobody can reach.
//
// # Quotas
//
// A quota bounds what specs may ask for in sum, with the driver's defaults for
// what they leave out, not what is in use at the moment: who was let in has what was
// promised. It is asked for in the same transaction in which the sandbox is written
// down, so servers that share a store share its quotas. What ephemeral sandboxes, and
// those being made or removed, have counts too; what was lost does not.
package tenant
