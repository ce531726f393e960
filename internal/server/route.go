package server

import (
	_ "embed"
	"net/http"
)

// openAPI is the contract.
//
//go:embed openapi.yaml
var openAPI []byte

// A route is a method with a path, and its handler.
type route struct {
	pattern string
	answer  http.HandlerFunc
}

// table returns every route. openapi.yaml describes each.
func (s *Server) table() []route {
	const box = "/v1/sandboxes/{id}"
	return []route{
		{"GET /openapi.yaml", s.open((*request).contract)},
		{"GET /v1/info", s.known((*request).info)},
		{"GET /v1/events", s.known((*request).events)},

		{"GET /v1/usage", s.known((*request).sums)},
		{"GET /v1/keys", s.known((*request).keys)},
		{"POST /v1/keys", s.known((*request).makeKey)},
		{"DELETE /v1/keys/{key}", s.known((*request).revokeKey)},

		{"GET /v1/images", s.known((*request).images)},
		{"POST /v1/images", s.known((*request).pullImage)},
		{"DELETE /v1/images", s.known((*request).removeImage)},

		{"POST /v1/sandboxes", s.known((*request).create)},
		{"GET /v1/sandboxes", s.known((*request).list)},
		{"DELETE /v1/creations/{token}", s.known((*request).uncreate)},
		{"DELETE /v1/snapshots/{snapshot}", s.known((*request).removeSnapshot)},
		{"GET /v1/leases/{token}", s.known((*request).lease)},
		{"DELETE /v1/leases/{token}", s.known((*request).endLease)},

		{"GET " + box, s.known((*request).status)},
		{"PATCH " + box, s.known((*request).update)},
		{"DELETE " + box, s.known((*request).remove)},
		{"GET " + box + "/usage", s.known((*request).usage)},
		{"GET " + box + "/terms", s.known((*request).terms)},
		{"PUT " + box + "/terms", s.known((*request).setTerms)},
		{"POST " + box + "/extend", s.known((*request).extend)},
		{"POST " + box + "/budget", s.known((*request).raise)},
		{"POST " + box + "/renew", s.known((*request).renew)},
		{"POST " + box + "/pause", s.known((*request).pause)},
		{"POST " + box + "/resume", s.known((*request).resume)},
		{"POST " + box + "/snapshots", s.known((*request).snapshot)},
		{"POST " + box + "/fork", s.known((*request).fork)},
		{"POST " + box + "/escalate", s.known((*request).escalate)},

		{"GET " + box + "/steps", s.known((*request).steps)},
		{"GET " + box + "/steps/{step}", s.known((*request).step)},
		{"GET " + box + "/steps/{step}/diff", s.known((*request).stepDiff)},
		{"POST " + box + "/undo", s.known((*request).undo)},

		{"GET " + box + "/questions", s.known((*request).questions)},
		{"POST " + box + "/questions/{question}", s.known((*request).answerQuestion)},

		{"POST " + box + "/processes", s.known((*request).start)},
		{"GET " + box + "/processes", s.known((*request).processes)},
		{"GET " + box + "/processes/{pid}/output", s.known((*request).output)},
		{"POST " + box + "/processes/{pid}/input", s.known((*request).input)},
		{"POST " + box + "/processes/{pid}/signal", s.known((*request).signal)},
		{"POST " + box + "/processes/{pid}/resize", s.known((*request).resize)},
		{"POST /v1/attachments/{token}/ack", s.known((*request).ack)},
		{"DELETE /v1/attachments/{token}", s.known((*request).detach)},

		{"POST " + box + "/interpret", s.known((*request).interpret)},
		{"GET " + box + "/contexts", s.known((*request).contexts)},
		{"POST " + box + "/contexts", s.known((*request).createContext)},
		{"DELETE " + box + "/contexts/{context}", s.known((*request).removeContext)},
		{"POST " + box + "/contexts/{context}/restart", s.known((*request).restartContext)},
		{"POST " + box + "/contexts/{context}/interrupt", s.known((*request).interruptContext)},

		{"GET " + box + "/files", s.known((*request).readFile)},
		{"PUT " + box + "/files", s.known((*request).writeFile)},
		{"DELETE " + box + "/files", s.known((*request).removeFile)},
		{"GET " + box + "/files/stat", s.known((*request).statFile)},
		{"GET " + box + "/files/list", s.known((*request).listFiles)},
		{"GET " + box + "/files/watch", s.known((*request).watchFiles)},
		{"POST " + box + "/files/mkdir", s.known((*request).makeDir)},
		{"POST " + box + "/files/move", s.known((*request).moveFile)},
		{"POST " + box + "/files/chmod", s.known((*request).changeMode)},
		{"POST " + box + "/files/symlink", s.known((*request).makeLink)},

		{"GET " + box + "/ports/{port}", s.known((*request).port)},
		{"GET " + box + "/ports/{port}/public", s.known((*request).publicPort)},
		{"PUT " + box + "/ports/{port}/public", s.known((*request).openPort)},
		{"DELETE " + box + "/ports/{port}/public", s.known((*request).closePort)},
		{"POST " + box + "/ports/{port}/url", s.known((*request).linkPort)},
	}
}

func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range s.table() {
		mux.Handle(r.pattern, r.answer)
	}
	return mux
}

func (q *request) contract() error {
	q.w.Header().Set("Content-Type", "application/yaml")
	q.deadline(stall)
	_, err := q.w.Write(openAPI)
	return err
}
