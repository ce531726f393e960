# A condition that is wrong ends a script as if nothing followed; eval gives 2.
for text in '[[ a b ]]' '[[ -f ]]' '[[ ]]' '[[ a == ]]' '[[ && ]]' '[[ ( a ]]' '[[ a -foo b ]]' '[[ a = b c ]]' '[[ a' '[[ a ; b ]]'; do
  (eval "$text; echo no") 2> /dev/null
  echo "$text: eval $?"
done
for text in in ']]' 'in a' 'a[' 'a[1' 'x=(1' 'x=(1 & 2)'; do
  (eval "$text
echo next") 2> /dev/null
  echo "$text: eval $?"
done
x=(1 & 2)
echo "goes on: $?"
false
[[ a b ]]
echo never
