package e2b

import (
	"encoding/json"
	"time"
)

// Bodies of requests. Pointers distinguish missing fields.

type newSandbox struct {
	TemplateID          string            `json:"templateID"`
	Timeout             *int64            `json:"timeout"`
	AutoPause           bool              `json:"autoPause"`
	AutoPauseMemory     *bool             `json:"autoPauseMemory"`
	AutoResume          *autoResume       `json:"autoResume"`
	Secure              *bool             `json:"secure"`
	AllowInternetAccess *bool             `json:"allow_internet_access"`
	Network             *network          `json:"network"`
	Metadata            map[string]string `json:"metadata"`
	EnvVars             map[string]string `json:"envVars"`
	MCP                 json.RawMessage   `json:"mcp"`
	IAM                 json.RawMessage   `json:"iam"`
	VolumeMounts        []json.RawMessage `json:"volumeMounts"`
	DiskSizeMB          *int64            `json:"diskSizeMB"` // not E2B's, but named as in its answers
}

type autoResume struct {
	Enabled bool `json:"enabled"`
}

// A network is E2B's network object, as it is received, stored and returned.
type network struct {
	AllowPublicTraffic *bool             `json:"allowPublicTraffic,omitempty"`
	AllowOut           []string          `json:"allowOut,omitempty"`
	DenyOut            []string          `json:"denyOut,omitempty"`
	DNSServers         []string          `json:"dnsServers,omitempty"`
	EgressProxy        *egressProxy      `json:"egressProxy,omitempty"`
	MaskRequestHost    string            `json:"maskRequestHost,omitempty"`
	HTTPSPorts         []int             `json:"httpsPorts,omitempty"`
	Rules              map[string][]rule `json:"rules,omitempty"`
}

type egressProxy struct {
	Address  string          `json:"address"`
	Username string          `json:"username,omitempty"`
	Password string          `json:"password,omitempty"`
	TLS      json.RawMessage `json:"tls,omitempty"`
}

type rule struct {
	Transform *transform `json:"transform,omitempty"`
}

type transform struct {
	Headers map[string]string `json:"headers,omitempty"`
}

// Bodies of answers.

type sandboxAnswer struct {
	TemplateID         string  `json:"templateID"`
	SandboxID          string  `json:"sandboxID"`
	ClientID           string  `json:"clientID"`
	EnvdVersion        string  `json:"envdVersion"`
	Alias              string  `json:"alias,omitempty"`
	EnvdAccessToken    string  `json:"envdAccessToken,omitempty"`
	TrafficAccessToken *string `json:"trafficAccessToken"`
	Domain             *string `json:"domain"`
}

// A listed describes a sandbox in a list.
type listed struct {
	TemplateID   string            `json:"templateID"`
	Alias        string            `json:"alias,omitempty"`
	SandboxID    string            `json:"sandboxID"`
	ClientID     string            `json:"clientID"`
	StartedAt    time.Time         `json:"startedAt"`
	EndAt        time.Time         `json:"endAt"`
	CPUCount     int               `json:"cpuCount"`
	MemoryMB     int64             `json:"memoryMB"`
	DiskSizeMB   int64             `json:"diskSizeMB"`
	Metadata     map[string]string `json:"metadata"`
	State        string            `json:"state"`
	EnvdVersion  string            `json:"envdVersion"`
	VolumeMounts []struct{}        `json:"volumeMounts"`
}

// A detail is the full description of a sandbox.
type detail struct {
	listed
	EnvdAccessToken     string    `json:"envdAccessToken,omitempty"`
	AllowInternetAccess *bool     `json:"allowInternetAccess"`
	Domain              *string   `json:"domain"`
	Network             *network  `json:"network,omitempty"`
	Lifecycle           lifecycle `json:"lifecycle"`
}

type lifecycle struct {
	AutoResume bool   `json:"autoResume"`
	OnTimeout  string `json:"onTimeout"`
}

// A metric is the usage of a sandbox at one time, in bytes and percent.
type metric struct {
	Timestamp     time.Time `json:"timestamp"`
	TimestampUnix int64     `json:"timestampUnix"`
	CPUCount      int       `json:"cpuCount"`
	CPUUsedPct    float64   `json:"cpuUsedPct"`
	MemUsed       int64     `json:"memUsed"`
	MemTotal      int64     `json:"memTotal"`
	MemCache      int64     `json:"memCache"`
	DiskUsed      int64     `json:"diskUsed"`
	DiskTotal     int64     `json:"diskTotal"`
}

// A logEntry is one line of the log of a sandbox or a build.
type logEntry struct {
	Timestamp time.Time         `json:"timestamp"`
	Message   string            `json:"message"`
	Level     string            `json:"level"`
	Fields    map[string]string `json:"fields,omitempty"`
	Step      string            `json:"step,omitempty"`
}
