import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;
import jdk.jshell.*;
import jdk.jshell.execution.LocalExecutionControlProvider;

/** The kernel for Java: a line of words is a request, and JShell runs it in this process. */
public class Kernel {
    static String mark;
    static final OutputStream out = new FileOutputStream(FileDescriptor.out), err = new FileOutputStream(FileDescriptor.err);
    static volatile int count;

    static synchronized void send(String message, OutputStream to) {
        byte[] data = message.getBytes(StandardCharsets.US_ASCII);
        int size = 4096 - 38;
        try {
            for (int at = 0; at < data.length; at += size) {
                int n = Math.min(size, data.length - at);
                ByteArrayOutputStream piece = new ByteArrayOutputStream();
                piece.write(0x1e);
                piece.write((mark + (at + n == data.length ? "." : "+") + String.format("%04x", n)).getBytes(StandardCharsets.US_ASCII));
                piece.write(data, at, n);
                to.write(piece.toByteArray());
            }
        } catch (IOException e) {
            Runtime.getRuntime().halt(1);
        }
    }

    static void both(String type, String seq) {
        System.out.flush();
        System.err.flush();
        String message = "{\"t\":\"" + type + "\",\"n\":\"" + seq + "\"}";
        send(message, out);
        send(message, err);
    }

    static String text(String s, int most) {
        if (s == null) s = "";
        if (s.length() > most) s = s.substring(0, most);
        StringBuilder b = new StringBuilder("\"");
        for (char c : s.toCharArray()) {
            if (c == '"' || c == '\\') b.append('\\').append(c);
            else if (c < 32 || c > 126) b.append(String.format("\\u%04x", (int) c));
            else b.append(c);
        }
        return b.append('"').toString();
    }

    static void fail(String seq, String name, String value, String trace) {
        System.out.flush();
        send("{\"t\":\"error\",\"n\":\"" + seq + "\",\"name\":" + text(name, 200) + ",\"value\":" + text(value, 40000) + ",\"traceback\":" + text(trace, 100000) + "}", out);
    }

    static String decode(String word) {
        return new String(Base64.getDecoder().decode(word.substring(1)), StandardCharsets.UTF_8);
    }

    static final Object turn = new Object(); // held while running changes, or what runs is stopped
    static volatile boolean running, stopped;

    /** Stops the cell that runs: again and again, for between two of its statements nothing of it does. */
    static void stop(JShell shell, int cell) {
        for (boolean more = true; more; ) {
            synchronized (turn) {
                more = running && stopped && count == cell;
                try {
                    if (more) shell.stop();
                } catch (RuntimeException e) {
                    // its thread is just being made
                }
            }
            try {
                Thread.sleep(10);
            } catch (InterruptedException e) {
                return;
            }
        }
    }

    static void cell(JShell shell, String[] words) {
        String seq = words[1];
        synchronized (turn) {
            stopped = false;
            running = true;
            count++;
        }
        send("{\"t\":\"begun\",\"n\":\"" + seq + "\",\"count\":" + count + "}", out);
        Map<String, String> before = new LinkedHashMap<>();
        for (int i = 3; i + 1 < words.length; i += 2) {
            String name = decode(words[i]);
            before.put(name, System.getProperty(name));
            System.setProperty(name, decode(words[i + 1]));
        }
        String rest = decode(words[2]), value = null;
        SourceCodeAnalysis analysis = shell.sourceCodeAnalysis();
        loop:
        while (!rest.isBlank()) {
            SourceCodeAnalysis.CompletionInfo info = analysis.analyzeCompletion(rest);
            String source = info.source() == null || info.source().isEmpty() ? rest : info.source();
            rest = info.source() == null || info.source().isEmpty() ? "" : info.remaining();
            value = null;
            List<SnippetEvent> events = stopped ? List.of() : shell.eval(source);
            if (stopped) {
                fail(seq, "Interrupted", "the cell was interrupted", "");
                break;
            }
            for (SnippetEvent e : events) {
                if (e.causeSnippet() != null) continue;
                if (e.status() == Snippet.Status.REJECTED) {
                    StringBuilder b = new StringBuilder();
                    shell.diagnostics(e.snippet()).forEach(d -> b.append(d.getMessage(Locale.ENGLISH)).append('\n'));
                    fail(seq, "CompilationError", b.toString().trim(), source + "\n" + b);
                    value = null;
                    break loop;
                }
                if (e.exception() != null) {
                    StringWriter w = new StringWriter();
                    e.exception().printStackTrace(new PrintWriter(w));
                    String name = e.exception() instanceof EvalException ? ((EvalException) e.exception()).getExceptionClassName() : e.exception().getClass().getName();
                    fail(seq, name, e.exception().getMessage(), w.toString());
                    value = null;
                    break loop;
                }
                Snippet.SubKind kind = e.snippet().subKind();
                if (kind == Snippet.SubKind.TEMP_VAR_EXPRESSION_SUBKIND || kind == Snippet.SubKind.VAR_VALUE_SUBKIND || kind == Snippet.SubKind.OTHER_EXPRESSION_SUBKIND) value = e.value();
            }
        }
        System.out.flush();
        if (value != null && !value.isEmpty())
            send("{\"t\":\"result\",\"n\":\"" + seq + "\",\"main\":true,\"data\":{\"text/plain\":" + text(value, 4 << 20) + "}}", out);
        for (Map.Entry<String, String> e : before.entrySet()) {
            if (e.getValue() == null) System.clearProperty(e.getKey());
            else System.setProperty(e.getKey(), e.getValue());
        }
        synchronized (turn) {
            running = false;
        }
    }

    public static void main(String[] args) throws Exception {
        mark = args[0].split(":")[4];
        Files.deleteIfExists(Paths.get(args[1]));
        System.setOut(new PrintStream(out, true, "UTF-8"));
        System.setErr(new PrintStream(err, true, "UTF-8"));
        System.getenv().forEach((k, v) -> { if (System.getProperty(k) == null) System.setProperty(k, v); });
        sun.misc.Signal.handle(new sun.misc.Signal("INT"), s -> { });
        JShell shell = JShell.builder().executionEngine(new LocalExecutionControlProvider(), null).build();
        for (String name : new String[] {"java.io.*", "java.math.*", "java.net.*", "java.nio.file.*", "java.util.*", "java.util.concurrent.*", "java.util.function.*", "java.util.regex.*", "java.util.stream.*"})
            shell.eval("import " + name + ";");
        BlockingQueue<String[]> queue = new LinkedBlockingQueue<>();
        Thread reader = new Thread(() -> {
            try (BufferedReader in = new BufferedReader(new InputStreamReader(new FileInputStream("/dev/fd/3"), StandardCharsets.UTF_8))) {
                for (String line; (line = in.readLine()) != null; ) {
                    if (!line.equals("interrupt")) queue.add(line.split(" "));
                    else if (running && !stopped) {
                        int cell = count;
                        stopped = true;
                        Thread stopper = new Thread(() -> stop(shell, cell));
                        stopper.setDaemon(true);
                        stopper.start();
                    }
                }
            } catch (IOException e) {
                // the end, as any other
            }
            Runtime.getRuntime().halt(0);
        });
        reader.setDaemon(true);
        reader.start();
        both("ready", "0");
        for (;;) {
            String[] words = queue.take();
            if (words[0].equals("run")) cell(shell, words);
            both("end", words[1]);
        }
    }
}
