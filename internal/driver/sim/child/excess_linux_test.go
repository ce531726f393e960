package child

import (
	"testing"
	"time"
)

// A process whose memory does not come back ends; one that reaches the bound again and again goes on.
func TestAnExcessThatLastsIsTold(t *testing.T) {
	var x excess
	for ran := time.Duration(0); ran < 10*mostExcess; ran += mostExcess / 2 {
		if x.lasts(true, ran) || x.lasts(false, ran) {
			t.Fatalf("one that ends, at %v", ran)
		}
	}
	if x.lasts(true, time.Hour) || x.lasts(true, time.Hour+mostExcess) {
		t.Error("one that may still end")
	}
	if !x.lasts(true, time.Hour+mostExcess+1) {
		t.Error("one that does not end is not told")
	}
}
