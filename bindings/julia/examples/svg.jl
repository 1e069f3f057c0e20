# Line and scatter plots as SVG files.
using Printf

const colours = ["#1b6ca8", "#d1603d", "#3c8d40", "#8e5ea2", "#b8860b", "#4d4d4d"]
const width, height, left, right, top, bottom = 640, 400, 64, 130, 36, 48

escape_text(text) = replace(replace(replace(string(text), "&" => "&amp;"), "<" => "&lt;"), ">" => "&gt;")

"Round numbers that divide an interval into about five parts."
function ticks(low, high)
    step = 10.0^floor(log10((high - low) / 4))
    distance(factor) = abs((high - low) / (step * factor) - 5)
    step *= [1, 2, 5][argmin(distance.([1, 2, 5]))]
    return ceil(low / step)*step:step:high
end

number(x) = @sprintf("%.6g", abs(x) < 1e-9 ? 0.0 : x)

"""
Writes a plot of `series`, pairs of a name and a vector of (x, y), as lines or, with `points=true`, as dots. Dots have the names of
`titles`, shown by browsers when the pointer is on them.
"""
function plot(path, title, xlabel, ylabel, series; points=false, titles=nothing)
    xs = [point[1] for (_, list) in series for point in list]
    ys = [point[2] for (_, list) in series for point in list]
    pad(low, high) = (low - 0.04 * (high - low), high + 0.04 * (high - low))
    (x0, x1), (y0, y1) = pad(extrema(xs)...), pad(extrema(ys)...)
    px(x) = round(left + (x - x0) / (x1 - x0) * (width - left - right); digits=1)
    py(y) = round(height - bottom - (y - y0) / (y1 - y0) * (height - top - bottom); digits=1)
    open(path, "w") do io
        println(io, """<svg xmlns="http://www.w3.org/2000/svg" width="$width" height="$height" font-family="sans-serif" font-size="12">""")
        println(io, """<rect width="$width" height="$height" fill="white"/>""")
        println(io, """<text x="$left" y="20" font-size="15">$(escape_text(title))</text>""")
        for x in ticks(x0, x1)
            println(io, """<line x1="$(px(x))" x2="$(px(x))" y1="$top" y2="$(height - bottom)" stroke="#e4e4e4"/>""")
            println(io, """<text x="$(px(x))" y="$(height - bottom + 16)" text-anchor="middle">$(number(x))</text>""")
        end
        for y in ticks(y0, y1)
            println(io, """<line x1="$left" x2="$(width - right)" y1="$(py(y))" y2="$(py(y))" stroke="#e4e4e4"/>""")
            println(io, """<text x="$(left - 6)" y="$(py(y) + 4)" text-anchor="end">$(number(y))</text>""")
        end
        println(io, """<text x="$((left + width - right) / 2)" y="$(height - 12)" text-anchor="middle">$(escape_text(xlabel))</text>""")
        println(io, """<text transform="translate(16 $((top + height - bottom) / 2)) rotate(-90)" text-anchor="middle">$(escape_text(ylabel))</text>""")
        for (i, (name, list)) in enumerate(series)
            colour = colours[mod1(i, length(colours))]
            if points
                for (k, (x, y)) in enumerate(list)
                    label = titles === nothing ? "" : "<title>$(escape_text(titles[i][k]))</title>"
                    println(io, """<circle cx="$(px(x))" cy="$(py(y))" r="3.5" fill="$colour" fill-opacity="0.7">$label</circle>""")
                end
            else
                path_data = join(("$(px(x)),$(py(y))" for (x, y) in list), " ")
                println(io, """<polyline points="$path_data" fill="none" stroke="$colour" stroke-width="2"/>""")
            end
            y = top + 14 * i
            println(io, """<circle cx="$(width - right + 14)" cy="$y" r="4" fill="$colour"/>""")
            println(io, """<text x="$(width - right + 24)" y="$(y + 4)">$(escape_text(name))</text>""")
        end
        println(io, "</svg>")
    end
    return path
end
