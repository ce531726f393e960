package main

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"
)

// agent is a client of an ssh-agent. It carries the steps out on one connection.
func agent(steps []string) error {
	socket := os.Getenv("SSH_AUTH_SOCK")
	if len(steps) == 2 && steps[0] == "many" {
		return manyAgents(socket, steps[1])
	}
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	for len(steps) > 0 {
		step := steps[0]
		steps = steps[1:]
		switch {
		case step == "list":
			err = listKeys(conn)
		case step == "sign" && len(steps) >= 2:
			err = signText(conn, steps[0], steps[1])
			steps = steps[2:]
		case step == "long":
			_, _ = conn.Write([]byte{64, 0, 0, 0, 11})
			if n, err := conn.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
				return fmt.Errorf("%d bytes, %w", n, err)
			}
			fmt.Println("closed")
		default:
			var kind int
			if kind, err = strconv.Atoi(step); err == nil {
				var answer []byte
				if answer, err = askAgent(conn, []byte{byte(kind), 0, 0, 0, 0}); err == nil {
					fmt.Println(answer[0])
				}
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
	}
	return nil
}

// askAgent sends one request, and returns the answer.
func askAgent(conn net.Conn, request []byte) ([]byte, error) {
	if _, err := conn.Write(agentText(nil, request)); err != nil {
		return nil, err
	}
	var length [4]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return nil, err
	}
	answer := make([]byte, binary.BigEndian.Uint32(length[:]))
	if _, err := io.ReadFull(conn, answer); err != nil {
		return nil, err
	}
	if len(answer) == 0 {
		return nil, errors.New("an empty answer")
	}
	return answer, nil
}

func agentText(to, text []byte) []byte {
	return append(binary.BigEndian.AppendUint32(to, uint32(len(text))), text...)
}

func cutText(b []byte) (text, rest []byte) {
	n := binary.BigEndian.Uint32(b)
	return b[4 : 4+n], b[4+n:]
}

func listKeys(conn net.Conn) error {
	answer, err := askAgent(conn, []byte{11})
	if err != nil {
		return err
	}
	if answer[0] != 12 {
		return fmt.Errorf("the answer is %d", answer[0])
	}
	n, rest := binary.BigEndian.Uint32(answer[1:]), answer[5:]
	for range n {
		var comment []byte
		_, rest = cutText(rest)
		comment, rest = cutText(rest)
		fmt.Printf("%s\n", comment)
	}
	return nil
}

func signText(conn net.Conn, key, text string) error {
	blob, err := hex.DecodeString(key)
	if err != nil {
		return err
	}
	answer, err := askAgent(conn, append(agentText(agentText([]byte{13}, blob), []byte(text)), 0, 0, 0, 0))
	if err != nil {
		return err
	}
	if answer[0] != 14 {
		fmt.Println("refused")
		return nil
	}
	signature, _ := cutText(answer[1:])
	fmt.Println(hex.EncodeToString(signature))
	return nil
}

// manyAgents opens so many connections, which stay open, and prints on how many of them keys are listed.
func manyAgents(socket, count string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	served := make(chan bool)
	end := make(chan struct{})
	for range n {
		go func() {
			conn, err := net.Dial("unix", socket)
			if err == nil {
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
				_, err = askAgent(conn, []byte{11})
			}
			served <- err == nil
			<-end
		}()
	}
	all := 0
	for range n {
		if <-served {
			all++
		}
	}
	close(end)
	_, err = fmt.Println(all)
	return err
}
