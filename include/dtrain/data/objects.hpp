// What the pictures of a record file show, for object detection: boxes, classes, groups and masks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/data/augment.hpp>
#include <dtrain/data/image.hpp>
#include <dtrain/data/record.hpp>
#include <dtrain/data/rle.hpp>
#include <dtrain/nn/graph.hpp>
#include <dtrain/nn/objects.hpp>

namespace dtrain::data {

// One object in pixels of the picture that was annotated. A mask is polygons or runs, or there is none.
struct Annotation {
  std::uint64_t id = 0;
  std::int32_t label = 0;
  bool crowd = false;  // a group that is not counted one by one
  PixelBox box = {};
  double area = 0;                                 // of the mask, as it was annotated; sorts objects by their size
  std::vector<std::vector<double>> polygons = {};  // x, y, x, y, ...
  std::vector<std::uint32_t> runs = {};            // as of Rle
  bool has_mask() const { return !polygons.empty() || !runs.empty(); }
};

struct Annotations {
  int height = 0, width = 0;  // of the picture that was annotated; the one in the record may have another size
  std::vector<Annotation> objects;
};

// The smallest around all of them.
PixelBox box_of_polygons(const std::vector<std::vector<double>>& polygons);
// Why the object cannot be trained on in a picture of this size ("its box has no area"); nullopt: it can.
std::optional<std::string> fault_of(const Annotation& object, int height, int width);
// Its mask at the size of the picture, of no pixel where the object has none. Throws DataError for a mask with a fault.
Rle mask_of(const Annotation& object, int height, int width);

// The bytes behind a record's picture, man/dtrain-records.5. Reading throws DataError.
std::string objects_block(const Annotations& annotations);
Annotations read_objects_block(ByteView block);
// The labels of a record with such a block, as MXNet's detection iterator reads them: 3, 5, the bytes of the block,
// then label, left, top, right and bottom of each object that is no crowd, as shares of the picture's size. Without any
// there is one of the label -1, which MXNet passes over.
std::vector<float> detection_labels(const Annotations& annotations, std::size_t block_bytes);
// Whether labels are of this form, which also other programs write.
bool has_boxes(std::span<const float> labels);
// The objects of such labels: each a row of class, left, top, right, bottom and what else a program wrote. MXNet passes
// over rows of a negative class, which fill up its batches.
std::vector<std::span<const float>> box_rows(std::span<const float> labels);
// Why the object of such a row cannot be trained on; nullopt: it can, or is passed over.
std::optional<std::string> fault_of_row(std::span<const float> row);
// The classes of such labels, without rows that MXNet passes over.
std::vector<std::int32_t> box_classes(std::span<const float> labels);

// What the record shows: from its block, else from its labels, with the size of its picture, `height` x `width`. Throws
// DataError for a record without boxes, damage, and a block that is for a picture of another shape.
Annotations annotations_of(const Record& record, int height, int width);

struct ScaledSize {
  int height = 0, width = 0;
  friend bool operator==(const ScaledSize&, const ScaledSize&) = default;
};

// How a picture becomes the network's input: resized, put in the left upper corner, and surrounded by 0.
struct DetectionInput {
  int shorter_edge = 0;  // pixels it gets; 0: as large as fits
  int longest_edge = 0;  // that the longer one may get by that; 0: any
  bool masks = false;    // fills PictureObjects::masks, to learn from
  bool runs = false;     // fills PictureObjects::runs, to evaluate by
  // Rooms for pictures of several aspects, each within the input's: group_for() chooses that of a picture, which is
  // then as large as fits there, whatever surrounds it. Empty: all have the input's room.
  std::vector<ScaledSize> groups = {};
  bool any_masks() const { return masks || runs; }
};

// The group in which a picture becomes largest; of such the one of the smallest area, of such the first.
std::size_t group_for(int height, int width, std::span<const ScaledSize> groups);
// The size of the record's picture: from the block of its annotations, else from the picture. Throws DataError.
ScaledSize picture_size(const Record& record, Image& scratch);

// Never larger than the input's room.
ScaledSize scaled_size(int height, int width, const DetectionInput& options, int room_height, int room_width);

// The mask at another size, by nearest pixels: rows of 0 and 1.
std::vector<std::uint8_t> mask_at(const Rle& mask, const ScaledSize& size);

// The annotations as objects of an input of room_height x room_width, of which the picture fills `size`. Boxes end at
// the picture's edges, those that have no area left are left out. Reuses the memory of `objects`, but for masks that
// take less than half of it.
void scale_objects(const Annotations& annotations, const ScaledSize& size, bool mirrored, const DetectionInput& wanted,
                   int room_height, int room_width, nn::PictureObjects& objects);

// A picture without annotations as a detector takes it: `out` [c, h, w] gets its pixels, `picture` its sizes and no
// objects, `scratch` the decoded picture. `augment` is that of evaluation. Returns the shape of `out`: `room`, or,
// where `in_group`, that of the picture's group. Throws DataError.
nn::Shape decode_whole(ByteView content, const Augment& augment, const DetectionInput& wanted, const nn::Shape& room,
                       bool in_group, Image& scratch, std::vector<float>& out, nn::PictureObjects& picture);

}  // namespace dtrain::data
