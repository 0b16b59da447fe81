package reports

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// PackedExtension ends the name of a packed bundle.
const PackedExtension = ".tar.zst"

// largest is what a packed bundle's files may come to: far more than any run
// leaves, and less than what fills a disk.
const largest = 8 << 30

// Pack writes a bundle as one compressed file, below the directory's own name.
// The same bundle gives the same bytes: names are in order, and neither times
// nor owners are in it. Each file is a zstd frame of its own, and so is each
// folder's content: a bundle of which one file changed gives the bytes of the
// others again, so that what keeps both, such as git, keeps little of the
// second. Frames that follow each other are one stream to every decoder (RFC
// 8878, section 3).
func Pack(dir string, to io.Writer) error {
	if _, err := os.Stat(filepath.Join(dir, PlanFile)); err != nil {
		return fmt.Errorf("%s is no bundle: %w; name a bundle's directory", dir, err)
	}
	files, err := list(dir)
	if err != nil {
		return err
	}
	for _, name := range []string{SumsFile, SignatureFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			files = append(files, name)
		}
	}
	slices.Sort(files)
	// One goroutine, since several would cut the blocks as they come.
	compressed, err := zstd.NewWriter(to, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	archive := tar.NewWriter(compressed)
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	for i, name := range files {
		if i > 0 && !shareFrame(files[i-1], name) {
			if err := errors.Join(archive.Flush(), compressed.Close()); err != nil {
				return err
			}
			compressed.Reset(to)
		}
		if err := packFile(archive, dir, filepath.Base(absolute), name); err != nil {
			return err
		}
	}
	// The archive's end is a frame too: the last file's bytes stay what they
	// are when a file comes after it.
	if err := errors.Join(archive.Flush(), compressed.Close()); err != nil {
		return err
	}
	compressed.Reset(to)
	return errors.Join(archive.Close(), compressed.Close())
}

// shareFrame says whether two files that follow each other are in one frame:
// those of a folder below the bundle are. They are the servers' logs, which
// resemble each other and are not derived again.
func shareFrame(a, b string) bool {
	folder, _, below := strings.Cut(a, "/")
	return below && strings.HasPrefix(b, folder+"/")
}

func packFile(archive *tar.Writer, dir, top, name string) error {
	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	if err := archive.WriteHeader(&tar.Header{Format: tar.FormatPAX, Name: top + "/" + name, Mode: 0o644, Size: int64(len(data))}); err != nil {
		return err
	}
	_, err = archive.Write(data)
	return err
}

// Unpack puts a packed bundle's directory into a folder and returns where it
// is. Nothing is written outside of it, no link is made, and no file that is
// there is touched: a bundle may come from anybody.
func Unpack(from io.Reader, folder string) (string, error) {
	compressed, err := zstd.NewReader(from, zstd.WithDecoderMaxMemory(1<<30))
	if err != nil {
		return "", fmt.Errorf("no packed bundle: %w", err)
	}
	defer compressed.Close()
	archive, top, left := tar.NewReader(compressed), "", int64(largest)
	for {
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return "", fmt.Errorf("no packed bundle: %w", err)
		}
		name := filepath.FromSlash(header.Name)
		first, _, below := strings.Cut(header.Name, "/")
		switch {
		case header.Typeflag != tar.TypeReg:
			return "", fmt.Errorf("it holds %s, which is no plain file: a packed bundle has no others", header.Name)
		case !filepath.IsLocal(name) || !below || top != "" && first != top:
			return "", fmt.Errorf("it holds %s, which is not below one directory: a packed bundle is", header.Name)
		case header.Size > left:
			return "", fmt.Errorf("it holds more than %d GiB: that is no bundle", int64(largest)>>30)
		}
		top, left = first, left-header.Size
		if err := unpackFile(archive, filepath.Join(folder, name)); err != nil {
			return "", err
		}
	}
	if top == "" {
		return "", errors.New("no packed bundle: it is empty")
	}
	return filepath.Join(folder, top), nil
}

func unpackFile(from io.Reader, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("it can't be unpacked here: %w; name another folder", err)
	}
	_, err = io.Copy(file, from)
	return errors.Join(err, file.Close())
}
