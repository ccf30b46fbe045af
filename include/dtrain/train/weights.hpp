// Weights that another program trained, or another run: safetensors files, and the state dicts that PyTorch saves.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/nn/initialize.hpp>
#include <dtrain/nn/networks.hpp>
#include <dtrain/train/checkpoint.hpp>

namespace dtrain::train {

// What became of the tensors of a network, for messages.
struct WeightsFit {
  std::size_t fitted = 0, wanted = 0;  // tensors of the network
  std::string set;       // which one of the whole sets of weights in the file was read; empty: there is one
  std::string new_head;  // why the last layer begins anew; empty: it does not
  // The network's other tensors that begin anew, with shape, reason and the nearest name of the file.
  std::vector<std::string> missing;
  std::vector<std::string> unused;  // tensors of the file, with their shapes
};

struct StartingWeights {
  Checkpoint checkpoint;  // at the beginning of a run; no optimizer state
  WeightsFit fit;
};

struct WeightsRequest {
  Path file;
  std::string new_head{};  // why the last layer begins anew in any case; empty: it does not
  bool whole = false;      // all tensors of the network must fit
  std::uint64_t seed = 0;  // of the tensors that begin anew
  nn::Initializer initializer = nn::Initializer::standard;
  SharedStore store{};  // for a URL; null: one made from the environment
};

// The file that `place` names: itself, also where it is a URL, or on this machine the newest checkpoint of this prefix,
// the tensors beside the manifest of one or beside its .params of MXNet, or the checkpoint that messages name so
// ("m/r8-0004").
Path file_of_weights(const Path& place);

// Downloads weights behind a URL into the user's cache, where the functions below find them; no other place is looked
// at. Calls tell() with one line where another process is downloading them, for which it waits. Throws as those do.
void fetch_weights(const Path& place, const std::function<void(const std::string&)>& tell,
                   const SharedStore& store = {});

// The tensors of a file that fit the graph by name and shape; the others have the first values of the seed. Names are
// the graph's own, or PyTorch's for layers of these names ("NODE.weight", "NODE.running_mean") or of timm's names for
// them, all behind one prefix such as "module."; of several whole sets of weights the trained ones, not their average.
// The last layer also begins anew where its shape differs, because the number of classes does. A detector also takes
// the weights of its backbone alone, under the names that the classifier has. The checkpoint's preprocessing is the
// file's if dtrain wrote it, else null. Throws DataError for a file that cannot be read, and where more than one in ten
// tensors does not fit or, if `whole`, not all: these are the weights of another network.
StartingWeights load_weights(const WeightsRequest& request, const nn::Graph& graph);

// Throws DataError naming `file`, whose weights the checkpoint has, where one of them is no number or infinite.
void require_finite(const Checkpoint& checkpoint, const Path& file);

// The number of classes of the file's last layer, which has the name of the graph's; nullopt where it has none.
std::optional<int> classes_of_weights(const Path& file, const nn::Graph& graph);

// What --network and its like call the network of the weights: that of the checkpoint whose tensors the file holds,
// what an export to safetensors says, of the networks that others publish weights of the one with most tensors of which
// the file has every one but the last layer's, or the file itself where it is an ONNX model of layers that dtrain
// knows. Image and classes are of no meaning. nullopt: no known network.
std::optional<nn::NetworkOptions> network_of_weights(const Path& file);

// The same, where dtrain wrote it into the file or beside it.
std::optional<nn::NetworkOptions> stated_network_of_weights(const Path& file);

// The network of an ONNX model, dtrain's or one of another program whose operators dtrain's layers compute: tensors
// have the names of the model's. All layers learn, and no class weighs more than others, however the run that made the
// model trained; its loss stays of the kind by which the model predicts. `image` and `classes` replace the size of the
// images and the outputs of the last layer; of a detector the classes stay. Throws DataError, for an operator of no
// layer with its node.
nn::Graph network_of_onnx_model(const Path& file, std::optional<nn::Shape> image = {}, std::optional<int> classes = {});

// What dtrain wrote into its own file about the pixels. Files of others have the names of their classes at most, or
// null. `store`: for a URL; null: one made from the environment.
Json preprocessing_of_weights(const Path& file, const SharedStore& store = {});
// nn::anchor_size() of the detector that dtrain trained; 0: the file does not say. Throws as above.
int anchor_size_of_weights(const Path& file);

}  // namespace dtrain::train
