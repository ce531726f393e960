package segment

import "testing"

func FuzzListing(f *testing.F) {
	f.Add([]byte(`<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>false</IsTruncated><Contents><Key>a%2Fb</Key></Contents></ListBucketResult>`))
	f.Add([]byte(`<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken></ListBucketResult>`))
	f.Add([]byte(`<!DOCTYPE a [<!ENTITY b "c">]><ListBucketResult><Contents><Key>&b;</Key></Contents></ListBucketResult>`))
	f.Add([]byte("<Error>"))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := readListing(data)
		if err == nil && (l.IsTruncated == (l.Next == "") || len(l.Next) > tokenMax || len(l.Contents) > len(data)) {
			t.Errorf("%+v", l)
		}
	})
}
