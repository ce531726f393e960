// Package attestation makes and verifies the attestation of a run: an in-toto Statement in a DSSE envelope that says in
// which sandbox, under which controls and policy, a workspace or commits were made. A [Tally] collects what the
// statement says from the lines of a verified record. [WriteManifest] lists a workspace, and [Resolve] finds a commit.
// docs/security/attestation.md defines the formats.
//
// Envelopes, statements, workspaces and repositories may come from hostile programs: every size is bounded, no link is
// followed, and no program of the repository is run.
package attestation
