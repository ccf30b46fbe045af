// One sample from its record: label and pixels, with another record instead of one that cannot be read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <dtrain/data/image.hpp>
#include <dtrain/data/loader.hpp>

#include "decoded_pictures.hpp"

namespace dtrain::data {

struct BadRecord {
  std::uint32_t position = 0;
  std::string what;  // with file, position and offset
};

// Throws UsageError for an option out of range, DataError when the images cannot feed a network of options.shape.
void check_loader(const RecordSet& file, const LoaderOptions& options);

// What to do about a label that is none of the classes. `are_fixed`: LoaderOptions::has_fixed_classes.
std::string hint_of_label(int classes, bool are_fixed);

// The class of the record at `position`. Throws DataError for labels that name none of them.
std::int32_t checked_label(const RecordSet& file, std::uint32_t position, const std::vector<float>& labels, int classes,
                           bool are_fixed = false);

// In which shape options.as_bytes stores the pictures of the file: stored_shape() of the first that can be decoded.
nn::Shape stored_shape(const RecordSet& file, const LoaderOptions& options);

// Where one sample goes: an image of floats, or bytes and their place; and what it shows.
struct SampleSlot {
  std::span<float> image;
  std::span<std::uint8_t> bytes;
  nn::PixelPlace* place = nullptr;
  nn::PictureObjects* objects = nullptr;  // of a detector
  nn::Shape shape = {};                   // of the image
};

// A record that an epoch takes.
struct Turn {
  std::uint32_t position = 0, copy = 0;
};

// Scratch of one thread; file, options and kept pictures must outlive it.
class SampleReader {
 public:
  // `kept`: null where no pictures are kept.
  SampleReader(const RecordSet& file, const LoaderOptions& options, std::uint32_t size, const nn::Shape& stored,
               DecodedPictures* kept)
      : file_(file), options_(options), size_(size), stored_(stored), kept_(kept) {}

  // Fills `out` and label() from the record at `turn.position` or the next good one after it (round the end), and adds
  // those passed over to `bad`. False when there is none among the next max_bad_records. Throws DataError for a label
  // out of range.
  bool read(const Turn& turn, std::uint32_t epoch, const SampleSlot& out, std::vector<BadRecord>& bad);
  std::int32_t label() const { return label_; }

 private:
  bool load(std::uint32_t position, const SampleKey& key, const SampleSlot& out, std::vector<BadRecord>& bad);
  void fill(std::uint32_t position, const SampleKey& key, const SampleSlot& out);
  const Image& whole_picture(std::uint32_t position);

  const RecordSet& file_;
  const LoaderOptions& options_;
  std::uint32_t size_;
  nn::Shape stored_;
  DecodedPictures* kept_;
  Record record_;
  Image image_;
  std::int32_t label_ = 0;
};

}  // namespace dtrain::data
