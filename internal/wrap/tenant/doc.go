// Package tenant isolates the tenants of a shared driver from each other.
//
// # The story
//
// A [Set] joins a driver that tenants share with a store that records the owner of each
// sandbox. [Set.Driver] returns a paddock.Driver for one tenant. It creates, opens, lists
// and removes the sandboxes and snapshots of this tenant only. For a sandbox of another
// tenant it answers NotFound, in the same words as for one that never existed.
//
// IDs are one name space for all tenants, because an ID is also a host name. A Create with
// an ID that another tenant uses answers Exists. A caller who must not reveal or learn
// names leaves the ID empty and gets one that cannot be guessed.
//
// # One user
//
// With [Options.Whole] there is one tenant, the user who owns the driver. It reaches every sandbox
// of the driver, also one that another program made. A sandbox without a record is not metered, has
// no terms, and is left alone by Adopt. Nothing is reported as lost, because the user can remove a
// sandbox without this driver.
//
// # Recovery
//
// The store records the owner before a sandbox is created, and deletes the record after
// the sandbox is removed. So after a crash every record is complete or marked as in
// progress. [Set.Adopt] removes what was in progress when the server starts again. A
// sandbox that the driver no longer knows is shown as dead, with the reason, until its
// tenant removes it.
//
// Each sandbox has the label [Label] with the name of the store and of its record. No
// tenant can see or set it. A sandbox with this store's name and without a record was
// created before the store was restored from a backup. Nobody could reach it, so Adopt
// removes it. Adopt leaves all other sandboxes of the driver alone, and those of servers
// at another place. A record opens and removes only the sandbox that has its label,
// whatever sandbox has its ID.
//
// The driver chooses the ID of a snapshot, so the store records it afterwards. A crash
// between the two leaves a snapshot that nobody can reach.
//
// # Quotas
//
// A quota bounds the sum of the limits that a tenant's specs ask for, with the driver's
// defaults for zero limits; in an Update these are the present ones. That of memory bounds the memory of the host that the sandboxes
// can take, as paddock.HostMemory tells it. It does not depend on current use, because an admitted
// sandbox keeps what it was promised. The check is in the transaction that records the
// sandbox, so servers with one store share its quotas. Ephemeral sandboxes count, and so
// do sandboxes that are being created or removed. Lost sandboxes do not count.
//
// A sandbox can end without a call of its tenant. So before a Create is refused, the tenant's
// sandboxes are asked whether they still exist: at most once a second, because a refused
// Create costs the caller nothing, and not if the request alone exceeds the quota.
package tenant
