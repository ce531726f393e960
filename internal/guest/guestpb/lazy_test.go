package guestpb

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestEveryProcedureHasAHandlerAndIsBuiltOnce(t *testing.T) {
	h := NewHandler(UnimplementedGuestHandler{}).(*handler)
	methods := File_guest_proto.Services().ByName("Guest").Methods()
	for i := range methods.Len() {
		name := "/" + GuestName + "/" + string(methods.Get(i).Name())
		if h.of(name) == nil {
			t.Errorf("%s has no handler", name)
		}
	}
	if len(h.made) != methods.Len() {
		t.Errorf("%d handlers were kept for %d procedures", len(h.made), methods.Len())
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/"+GuestName+"/None", nil))
	if w.Code != http.StatusNotFound || len(h.made) != methods.Len() {
		t.Errorf("a procedure that does not exist: status %d, and %d handlers are kept", w.Code, len(h.made))
	}
}
