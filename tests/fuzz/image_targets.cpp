#include <dtrain/data/augment.hpp>
#include <dtrain/data/image.hpp>

#include "fuzz.hpp"

namespace dtrain::fuzz {
namespace {

data::Image gradient(int channels) {
  data::Image image{channels, 24, 20, {}};
  for (int i = 0; i < channels * 24 * 20; ++i) image.pixels.push_back(static_cast<std::uint8_t>(i * 7));
  return image;
}

}  // namespace

std::vector<Target> image_targets() {
  std::vector<Target> targets;
  for (const std::string& name : data::encoding_names()) {
    Target target{"image-" + name, {}, [](const std::string& input) {
                    data::Image image;
                    data::decode_image(bytes_of(input), 3, image);
                  }};
    for (const int channels : {1, 3}) {
      target.seeds.push_back(data::encode_image(gradient(channels), *data::parse_encoding(name)));
    }
    targets.push_back(std::move(target));
  }
  targets.push_back({"image-webp",
                     {read_file(Path(DTRAIN_TESTS_DIR) / "unit/data/golden/still.webp"),
                      read_file(Path(DTRAIN_TESTS_DIR) / "unit/data/golden/still_alpha.webp")},
                     [](const std::string& input) {
                       data::Image image;
                       data::decode_image(bytes_of(input), 3, image);
                     }});
  Target plain{"image-bmp-tiff", {}, targets.back().parse};
  for (const char* name : {"rgb.bmp", "palette.bmp", "plain.tif", "lzw.tif", "deflate.tif", "packbits.tif"}) {
    plain.seeds.push_back(read_file(Path(DTRAIN_TESTS_DIR) / "unit/data/golden" / name));
  }
  targets.push_back(std::move(plain));
  targets.push_back({"window-jpeg",
                     {data::encode_image(gradient(1), data::Encoding::jpeg),
                      data::encode_image(gradient(3), data::Encoding::jpeg, {.full_colour = false})},
                     [](const std::string& input) {
                       std::vector<float> out(3 * 8 * 8);
                       data::Image scratch;
                       for (std::uint32_t sample = 0; sample < 4; ++sample) {
                         data::decode_and_augment(bytes_of(input), {.random_resized_crop = true}, {1, 0, sample},
                                                  {3, 8, 8}, scratch, out);
                       }
                     }});
  return targets;
}

}  // namespace dtrain::fuzz
