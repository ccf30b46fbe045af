// MNIST and its likes, as they are published.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include <dtrain/base/error.hpp>

#include "codec/idx_array.hpp"
#include "sample_source.hpp"

namespace dtrain::data {
namespace {

constexpr int kClasses = 10;

// Images and labels of train, then of val.
struct IdxSet {
  const char* title;
  const char* home;
  std::array<PublishedFile, 4> files;
};

constexpr IdxSet kMnist{
    "MNIST",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    {{{"train-images-idx3-ubyte.gz", 9912422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
      {"train-labels-idx1-ubyte.gz", 28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"},
      {"t10k-images-idx3-ubyte.gz", 1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
      {"t10k-labels-idx1-ubyte.gz", 4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"}}}};

constexpr IdxSet kFashionMnist{
    "Fashion-MNIST",
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    {{{"train-images-idx3-ubyte.gz", 26421880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"},
      {"train-labels-idx1-ubyte.gz", 29515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"},
      {"t10k-images-idx3-ubyte.gz", 4422102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"},
      {"t10k-labels-idx1-ubyte.gz", 5148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"}}}};

struct LabelledArray {
  IdxArray images, labels;
};

// `open` gives the bytes of a published file.
template <typename Open>
LabelledArray pair_up(const Open& open, const PublishedFile& image_file, const PublishedFile& label_file) {
  LabelledArray pair{parse_idx(open(image_file), 3), parse_idx(open(label_file), 1)};
  if (pair.images.shape[0] != pair.labels.shape[0]) {
    throw DataError(fmt::format("{}: has {} images, but {} has {} labels", pair.images.file.name, pair.images.shape[0],
                                pair.labels.file.name, pair.labels.shape[0]),
                    "take both files from the same place");
  }
  return pair;
}

class IdxSource : public SampleSource {
 public:
  IdxSource(LabelledArray train, LabelledArray val) : train_(std::move(train)), val_(std::move(val)) {}

  std::uint64_t count(Split split) const override { return of(split).labels.values.size(); }

  void for_each(Split split, const Take& take) const override {
    const auto& [images, labels] = of(split);
    Image image{1, static_cast<int>(images.shape[1]), static_cast<int>(images.shape[2]), {}};
    const std::size_t size = images.shape[1] * images.shape[2];
    for (std::size_t i = 0; i < labels.values.size(); ++i) {
      const auto label = static_cast<std::uint8_t>(labels.values[i]);
      if (label >= kClasses) {
        throw DataError(fmt::format("{}: item {}: label {} is not below {}", labels.file.name, i, label, kClasses),
                        "the file is damaged: copy or download it again");
      }
      const auto* pixels = reinterpret_cast<const std::uint8_t*>(images.values.data() + i * size);
      image.pixels.assign(pixels, pixels + size);
      if (!take(label, image)) return;
    }
  }

 private:
  const LabelledArray& of(Split split) const { return split == Split::train ? train_ : val_; }
  LabelledArray train_, val_;
};

std::string plain_name(const PublishedFile& file) {
  std::string name = file.name;
  return name.substr(0, name.size() - std::string_view(".gz").size());
}

// NAME.gz or NAME in the folder.
SourceBytes open_local(const Path& folder, const IdxSet& set, const PublishedFile& file) {
  const Path packed = folder / file.name, plain = folder / plain_name(file);
  if (std::filesystem::exists(packed)) return gunzip(map_source(packed));
  if (std::filesystem::exists(plain)) return map_source(plain);
  std::string wanted;
  for (const PublishedFile& each : set.files)
    wanted += fmt::format("{}{}", wanted.empty() ? "" : ", ", plain_name(each));
  throw DataError(
      fmt::format("{}: no {} here: {} is missing; looked for {}, each also as .gz", folder.string(), set.title,
                  plain_name(file), wanted),
      fmt::format("name the folder with the files, or leave setting 'from' away to download from {}", set.home));
}

std::unique_ptr<SampleSource> open_set(const IdxSet& set, const PrepareOptions& options) {
  const auto open = [&](const PublishedFile& file) {
    if (!options.from.empty() && !is_url(options.from)) return open_local(options.from, set, file);
    return gunzip(map_source(fetch(file, options.from.empty() ? set.home : options.from, options)));
  };
  LabelledArray train = pair_up(open, set.files[0], set.files[1]);
  LabelledArray val = pair_up(open, set.files[2], set.files[3]);
  return std::make_unique<IdxSource>(std::move(train), std::move(val));
}

}  // namespace

std::unique_ptr<SampleSource> open_mnist(const PrepareOptions& options) { return open_set(kMnist, options); }
std::unique_ptr<SampleSource> open_fashion_mnist(const PrepareOptions& options) {
  return open_set(kFashionMnist, options);
}

}  // namespace dtrain::data
