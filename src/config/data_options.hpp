// Options of input data and augmentation, with the names, meaning and defaults of MXNet's image-classification scripts.
#pragma once

#include <optional>

#include <dtrain/backend/backend.hpp>
#include <dtrain/base/enum_names.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/data/augment.hpp>
#include <dtrain/data/loader.hpp>
#include <dtrain/train/trainer.hpp>

#include "option_set.hpp"

namespace dtrain::config {

constexpr EnumName<data::AutoAugment> kAutoAugmentNames[] = {{data::AutoAugment::none, "none"},
                                                             {data::AutoAugment::trivial, "trivial"},
                                                             {data::AutoAugment::rand, "rand"},
                                                             {data::AutoAugment::imagenet, "imagenet"}};
constexpr EnumName<data::ErasingMode> kErasingNames[] = {
    {data::ErasingMode::pixel, "pixel"}, {data::ErasingMode::rand, "rand"}, {data::ErasingMode::zero, "const"}};

struct DataOptions {
  std::optional<Path> train, validation;
  std::optional<Path> train_index, validation_index;  // where the user says that their .idx files are
  std::vector<std::string> class_names;               // by label, from the training records; empty: unknown
  nn::Shape image{3, 28, 28};
  int classes = 10;
  std::int64_t num_examples = 0;  // 0: all of the index
  int shuffle_block = 0;
  bool balanced_sampler = false;
  int repeated_augment = 1;
  int threads = 4;
  int prefetch = 4;
  std::int64_t max_bad_records = 0;
  std::string test_views = "1";
  Path cache_dir;  // empty: the user's cache folder
  int cache_size_gib = 32;
  double cache_decoded_gib = 0;                   // memory for decoded training pictures; 0: none are kept
  std::vector<data::ScaledSize> aspect_groups;    // to which a detector's pictures are padded; empty: to `image`
  std::optional<data::DetectionInput> detection;  // of a detector's pictures; suit_network() sets it
  data::Augment augment{.random_crop = true, .random_mirror = true, .mean = {123.68f, 116.779f, 103.939f}};
};

// Fills what depends on this machine: threads, no more than this process may use.
void set_machine_defaults(DataOptions& options);
void bind_data(OptionSet& set, DataOptions& options);
void bind_validation_data(OptionSet& set, DataOptions& options);
void bind_data_threads(OptionSet& set, DataOptions& options);
void bind_prefetch(OptionSet& set, DataOptions& options);
void bind_cache_decoded(OptionSet& set, DataOptions& options);
void bind_image(OptionSet& set, DataOptions& options);  // shape, classes, mean and deviation
// The same for commands that only look at images: any number of classes is right unless the user gives one.
void bind_image_of_any_class(OptionSet& set, DataOptions& options);
void bind_test_views(OptionSet& set, DataOptions& options);
// The same of a trained network, whose checkpoint knows them: bind_checkpoint_image() has the views, too.
void bind_checkpoint_views(OptionSet& set, DataOptions& options);
void bind_checkpoint_image(OptionSet& set, DataOptions& options);
void bind_augmentation(OptionSet& set, DataOptions& options);

// What a checkpoint says about its pixels, and back: {"image_shape": [c, h, w], "rgb_mean": [...], "rgb_std": [...]},
// "resize" and "classes" where they are known, and "crop": "center", which is what evaluation cuts out; a detector's
// pictures are whole, "none", and have "aspect_groups" where they are padded to those. A classifier's have
// "test_views", the number of views of each that an evaluation averages.
inline constexpr const char* kWholePictures = "none";
Json preprocessing_of(const DataOptions& options);
// Its "aspect_groups"; none where there are none.
std::vector<data::ScaledSize> aspect_groups_of(const Json& preprocessing);
// Its "classes": the names by label; empty where there are none.
std::vector<std::string> class_names_of(const Json& preprocessing);
// Fills what the person did not choose. Throws DataError when the document is of another shape.
void take_preprocessing(const Json& preprocessing, const OptionSet& set, DataOptions& options);

int test_views(const DataOptions& options);
// Takes the number of views of a checkpoint's evaluations, unless the user chose one or an older dtrain wrote none, so
// that accuracies compare. Throws DataError for a number that no option chooses.
void take_test_views(const Json& preprocessing, const OptionSet& set, DataOptions& options);

// Pictures come as the network takes them: a detector's whole, with what they show, so that defaults which would cut
// them give way, as those do which change their colours for CIFAR-10. Throws SettingError for a choice of the user's
// that a detector does not take.
void suit_network(const nn::Graph& graph, const OptionSet& set, DataOptions& options);
// The same of options that are settled.
void suit_network(const nn::Graph& graph, DataOptions& options);

// Throws DataError with a hint how to make or name them when find_records() does not find them.
void require_records(const Path& files);

// MXNet's scripts take the index by its name; dtrain reads the one beside the records. Throws UsageError, which names
// the setting, for another one.
void require_index(const std::optional<Path>& index, const Path& records, const std::string& setting);

void set_cache(const DataOptions& options, data::RemoteOptions& remote);
data::LoaderOptions training_loader(const DataOptions& options, std::uint64_t seed);
// File order, no augmentation, every record that can be read.
data::LoaderOptions validation_loader(const DataOptions& options);
// Batches as the backend would have them.
void load_for(const backend::Backend& backend, data::LoaderOptions& options);

}  // namespace dtrain::config
