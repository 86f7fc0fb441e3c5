# A figure of `ropewalk report FOLDER --figures OUT` in light colours -> the same for a dark page: sed -f dark.sed IN.svg > OUT.svg
s/#222/#e6edf3/g
s/#ddd/#3d444d/g
s/#666/#9198a1/g
s/height="100%" fill="#fff"/height="100%" fill="#0d1117"/
s/#1963c1/#4b93f0/g
s/#b24215/#e0703f/g
s/#085758/#2fa3a4/g
