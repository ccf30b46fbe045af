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
  return targets;
}

}  // namespace dtrain::fuzz
