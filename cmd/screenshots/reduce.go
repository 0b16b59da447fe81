package main

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"io"
	"maps"
	"slices"
)

// reduce writes a PNG again with 256 colours, the most frequent ones: a page has
// few, and the rest are edges of letters, of which nobody misses a shade.
func reduce(to io.Writer, data []byte) error {
	from, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return err
	}
	bounds := from.Bounds()
	count := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA {
		r, g, b, _ := from.At(x, y).RGBA()
		return color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 0xff}
	}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	value := func(c color.RGBA) int { return int(c.R)<<16 | int(c.G)<<8 | int(c.B) }
	frequent := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(value(a), value(b)))
	})
	palette := color.Palette{}
	for _, c := range frequent[:min(len(frequent), 256)] {
		palette = append(palette, c)
	}
	small := image.NewPaletted(bounds, palette)
	index := map[color.RGBA]uint8{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			c := at(x, y)
			i, known := index[c]
			if !known {
				i = uint8(palette.Index(c))
				index[c] = i
			}
			small.SetColorIndex(x, y, i)
		}
	}
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	return encoder.Encode(to, small)
}
