// A window of a picture as the network's pixels: resized, mirrored and, unless colours are still to be changed,
// normalised while its rows arrive.
#pragma once

#include <dtrain/data/augment.hpp>

#include "source_window.hpp"

namespace dtrain::data {

// `out` as of augment(). The image has shape.c channels.
void fill_from_image(const Image& image, const SourceWindow& window, const Augment& options, const nn::Shape& shape,
                     float* out);
// The window that is drawn for the image as augment() gives it, before normalising: rows of [w, c], `stride` bytes from
// one to the next. False, with nothing written, where no window is drawn.
bool bytes_from_image(const Image& image, const Augment& options, const SampleKey& key, const nn::Shape& shape,
                      std::ptrdiff_t stride, std::uint8_t* out);

// Decodes no more of the JPEG than the window needs. False, with nothing written, for a JPEG that has to be decoded as
// a whole: CMYK, a picture that EXIF turns, one that no window is drawn for. Throws DataError for damage where it
// looks.
bool fill_from_jpeg(ByteView jpeg, const Augment& options, const SampleKey& key, const nn::Shape& shape, float* out);
// The same before normalising, in rows as of bytes_from_image().
bool bytes_from_jpeg(ByteView jpeg, const Augment& options, const SampleKey& key, const nn::Shape& shape,
                     std::ptrdiff_t stride, std::uint8_t* out);

// The whole JPEG, smaller: decoded at a fraction of its size where that is enough, the rest by averages. nullopt: its
// shorter edge is no longer than that, or it has to be decoded as a whole. Throws DataError for damage.
std::optional<Image> shrunk_jpeg(ByteView jpeg, int shorter_edge);

}  // namespace dtrain::data
