#include <dtrain/base/hash.hpp>
#include <dtrain/data/image.hpp>
#include <dtrain/data/objects.hpp>
#include <dtrain/data/pack.hpp>
#include <dtrain/data/record.hpp>

#include <cstring>

#include "fuzz.hpp"

namespace dtrain::fuzz {
namespace {

void write_records(const Path& rec) {
  const data::Image image{3, 8, 8, std::vector<std::uint8_t>(192, 100)};
  data::RecordWriter writer(rec);
  const std::string payload = data::encode_image(image, data::Encoding::raw);
  for (std::uint64_t id = 0; id < 4; ++id) writer.add(id, static_cast<float>(id), bytes_of(payload));
  const float labels[] = {1, 2, 3};
  writer.add(4, labels, bytes_of(payload));
  // The container's own magic number within a payload: such a record is stored in parts.
  writer.add(5, 1, bytes_of(std::string("\x0a\x23\xd7\xce", 4) + payload));
  writer.finish();
}

// A frame of the container around it, so that damage meets the header inside.
std::string framed(const std::string& payload) {
  std::string frame("\x0a\x23\xd7\xce", 4);
  for (int shift = 0; shift < 32; shift += 8) frame += static_cast<char>(payload.size() >> shift & 255);
  return frame + payload + std::string((4 - payload.size() % 4) % 4, '\0');
}

// What is in the first frame.
std::string first_payload(const std::string& records) {
  std::uint32_t size = 0;
  std::memcpy(&size, records.data() + 4, sizeof(size));
  return records.substr(8, size);
}

void read_all(const Path& rec) {
  data::verify_records(rec);
  const data::RecordFile file(rec);
  for (std::size_t i = 0; i < file.size(); ++i) file.read(i);
}

// The objects of a record behind a checksum that is right, so that damage meets what it covers.
void use_objects(const std::string& content) {
  std::string block("DTOB\1\0\0\0", 8);
  for (int shift = 0; shift < 32; shift += 8) block += static_cast<char>(crc32c(bytes_of(content)) >> shift & 255);
  const data::Annotations annotations = data::read_objects_block(bytes_of(block + content));
  nn::PictureObjects objects;
  for (const data::Annotation& object : annotations.objects)
    data::fault_of(object, annotations.height, annotations.width);
  data::detection_labels(annotations, block.size());
  data::scale_objects(annotations, {9, 13}, true, {.masks = true, .runs = true}, 12, 16, objects);
}

std::string some_objects() {
  data::Annotation dog{.id = 1, .box = {1, 1, 6, 4}, .polygons = {{1, 1, 7, 1, 7, 5}}};
  data::Annotation crowd{.id = 2, .crowd = true, .box = {0, 0, 8, 8}, .runs = {8, 40, 16}};
  return data::objects_block({8, 8, {dog, crowd}}).substr(12);
}

}  // namespace

std::vector<Target> record_targets(const Path& folder) {
  const Path rec = folder / "good.rec", idx = folder / "good.idx";
  write_records(rec);
  const std::string records = read_file(rec), index = read_file(idx);
  const std::string list = "0\t1.000000\ta/1.jpg\n7\t2\t0.5\tb/2 3.png\n";
  const std::string coco =
      R"({"images":[{"id":3,"file_name":"a.jpg","width":100,"height":50}],"annotations":[{"image_id":3,"category_id":18,)"
      R"("bbox":[10,5,20.5,10],"iscrowd":0,"segmentation":[[10,5,30,5,30,15]]},{"image_id":3,"category_id":18,"bbox":)"
      R"([0,0,9,9],"iscrowd":1,"segmentation":{"size":[50,100],"counts":"d0f04j4"}}],"categories":[{"id":18,"name":"dog"}]})";
  return {
      {"list",
       {list},
       [=](const std::string& input) {
         write_quickly(folder / "list.lst", input);
         data::list_images(folder / "list.lst", folder);
       }},
      {"coco",
       {coco},
       [=](const std::string& input) {
         write_quickly(folder / "coco.json", input);
         data::list_images(folder / "coco.json", folder, data::CocoLabels::boxes);
       }},
      {"objects", {some_objects()}, use_objects},
      {"mask-text",
       {"61X13mN000`0"},
       [](const std::string& input) {
         const data::Rle mask = data::runs_of_text(input, 9, 10);
         data::mask_box(mask);
         data::text_of_runs(data::united(std::vector{mask, mask}));
       }},
      {"records",
       {records},
       [=](const std::string& input) {
         write_quickly(folder / "alone.rec", input);
         read_all(folder / "alone.rec");
       }},
      {"record-header",
       {first_payload(records)},
       [=](const std::string& input) {
         write_quickly(folder / "header.rec", framed(input));
         read_all(folder / "header.rec");
       }},
      {"records-with-index",
       {records},
       [=](const std::string& input) {
         write_quickly(folder / "both.idx", index);
         write_quickly(folder / "both.rec", input);
         read_all(folder / "both.rec");
       }},
      {"index",
       {index},
       [=](const std::string& input) {
         write_quickly(folder / "index.rec", records);
         write_quickly(folder / "index.idx", input);
         read_all(folder / "index.rec");
       }},
  };
}

}  // namespace dtrain::fuzz
