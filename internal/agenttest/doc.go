// Package agenttest has scripted models: one server on loopback that answers as the vendors of models do, by
// a script. Tests start real coding agents with it, so no test talks to a vendor and each does the same every time.
//
// A [Model] speaks Anthropic's Messages, OpenAI's Responses and chat completions, and Gemini's generateContent,
// with TLS of an authority that it makes itself. What it says is a list of [Turn]s: how many answers of the model
// a request already holds tells which turn is next. So a session that an agent resumes goes on where it was, and
// one whose history was lost begins again, which a test sees.
//
// Each agent has its own names for the tools that it offers. The model takes the first that it knows of those that
// a request offers.
package agenttest
