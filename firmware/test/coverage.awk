# Sums up `gcov -b -c`: lines and branches per file of core/, and of all.
function numbers(text, out,    parts) { # "Lines executed:97.50% of 40"
    split(text, parts, /[:%]| of /)
    out[1] = parts[2]
    out[2] = parts[4]
}
/^File '/ { name = $0; sub(/^File '/, "", name); sub(/'$/, "", name); show = name ~ /^core\/.*\.c$/; lines[name] = "" }
/^Lines executed/ && show { numbers($0, n); line_share[name] = n[1]; line_count[name] = n[2]; names[name] = 1 }
/^Creating|^$/ { show = 0 } # the sum at the end belongs to no file
/^Taken at least once/ && show { numbers($0, n); branch_share[name] = n[1]; branch_count[name] = n[2] }
END {
    printf "%-24s %8s %6s %8s %6s\n", "file", "lines", "of", "branches", "of"
    for (name in names) {
        covered += line_share[name] * line_count[name] / 100
        total += line_count[name]
        branched += branch_share[name] * branch_count[name] / 100
        branches += branch_count[name]
        printf "%-24s %7.2f%% %6d %7.2f%% %6d\n", name, line_share[name], line_count[name], branch_share[name], branch_count[name] | "sort"
    }
    close("sort")
    printf "%-24s %7.2f%% %6d %7.2f%% %6d\n", "all", 100 * covered / total, total, 100 * branched / branches, branches
}
