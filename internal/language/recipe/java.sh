install() {
	has mvn || lacks mvn --with
	{
		echo '<project><modelVersion>4.0.0</modelVersion><groupId>p</groupId><artifactId>p</artifactId><version>1</version><dependencies>'
		for one; do
			rest=${one#*:}
			echo "<dependency><groupId>${one%%:*}</groupId><artifactId>${rest%%:*}</artifactId><version>${rest#*:}</version></dependency>"
		done
		echo '</dependencies></project>'
	} >"$top/pom.xml"
	mvn -q -f "$top/pom.xml" dependency:copy-dependencies "-DoutputDirectory=$libs"
}
run() {
	has java || lacks java Java
	enter
	exec java -cp "$libs/*" "$@"
}
