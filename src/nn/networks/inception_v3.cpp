// Szegedy et al., "Rethinking the Inception Architecture for Computer Vision", 2015, as torchvision writes it, without
// the head that the paper adds for training.
#include "families.hpp"
#include "torch_blocks.hpp"

namespace dtrain::nn {
namespace {

// One module, whose convolutions begin with its name.
class Module {
 public:
  Module(Chain& net, std::string name) : net_(net), name_(std::move(name)), branches_(net) {}

  // A square convolution that keeps the size of the image.
  Module& keep(const char* part, int channels, int kernel) {
    return add(part, square_convolution(channels, kernel, 1, kernel / 2));
  }
  // One that halves it.
  Module& halve(const char* part, int channels) { return add(part, square_convolution(channels, 3, 2)); }
  // A line of pixels, which keeps it too.
  Module& row(const char* part, int channels, int pixels) {
    return add(part, {.out = channels, .kernel_w = pixels, .pad_w = pixels / 2});
  }
  Module& column(const char* part, int channels, int pixels) {
    return add(part, {.out = channels, .kernel_h = pixels, .pad_h = pixels / 2});
  }
  void end() { branches_.end(); }

  void average_branch(int channels) {
    Pooling pooling = max_pooling(3, 1, 1);
    pooling.kind = PoolingKind::average;
    net_.then(name_ + ".avg_pool", pooling);
    keep("branch_pool", channels, 1).end();
    branches_.join(name_ + ".concat");
  }
  void pooling_branch() {
    net_.then(name_ + ".max_pool", max_pooling(3, 2));
    end();
    branches_.join(name_ + ".concat");
  }
  // A row and a column of what is last, one after the other.
  void cross(const char* row_part, const char* column_part, const char* joined) {
    Branches both(net_);
    row(row_part, 384, 3);
    both.end();
    column(column_part, 384, 3);
    both.end();
    both.join(name_ + joined);
    end();
  }

 private:
  Module& add(const char* part, const Convolution& convolution) {
    basic_convolution(net_, name_ + "." + part, convolution);
    return *this;
  }

  Chain& net_;
  std::string name_;
  Branches branches_;
};

void add_a(Chain& net, const char* name, int pool_channels) {
  Module module(net, name);
  module.keep("branch1x1", 64, 1).end();
  module.keep("branch5x5_1", 48, 1).keep("branch5x5_2", 64, 5).end();
  module.keep("branch3x3dbl_1", 64, 1).keep("branch3x3dbl_2", 96, 3).keep("branch3x3dbl_3", 96, 3).end();
  module.average_branch(pool_channels);
}

void add_b(Chain& net, const char* name) {
  Module module(net, name);
  module.halve("branch3x3", 384).end();
  module.keep("branch3x3dbl_1", 64, 1).keep("branch3x3dbl_2", 96, 3).halve("branch3x3dbl_3", 96).end();
  module.pooling_branch();
}

void add_c(Chain& net, const char* name, int inner) {
  Module module(net, name);
  module.keep("branch1x1", 192, 1).end();
  module.keep("branch7x7_1", inner, 1).row("branch7x7_2", inner, 7).column("branch7x7_3", 192, 7).end();
  module.keep("branch7x7dbl_1", inner, 1).column("branch7x7dbl_2", inner, 7).row("branch7x7dbl_3", inner, 7);
  module.column("branch7x7dbl_4", inner, 7).row("branch7x7dbl_5", 192, 7).end();
  module.average_branch(192);
}

void add_d(Chain& net, const char* name) {
  Module module(net, name);
  module.keep("branch3x3_1", 192, 1).halve("branch3x3_2", 320).end();
  module.keep("branch7x7x3_1", 192, 1).row("branch7x7x3_2", 192, 7).column("branch7x7x3_3", 192, 7);
  module.halve("branch7x7x3_4", 192).end();
  module.pooling_branch();
}

void add_e(Chain& net, const char* name) {
  Module module(net, name);
  module.keep("branch1x1", 320, 1).end();
  module.keep("branch3x3_1", 384, 1).cross("branch3x3_2a", "branch3x3_2b", ".branch3x3.concat");
  module.keep("branch3x3dbl_1", 448, 1).keep("branch3x3dbl_2", 384, 3);
  module.cross("branch3x3dbl_3a", "branch3x3dbl_3b", ".branch3x3dbl.concat");
  module.average_branch(192);
}

}  // namespace

Graph build_inception_v3(const NetworkOptions& options) {
  Chain net(options.name, options.image);
  basic_convolution(net, "Conv2d_1a_3x3", square_convolution(32, 3, 2));
  basic_convolution(net, "Conv2d_2a_3x3", square_convolution(32, 3));
  basic_convolution(net, "Conv2d_2b_3x3", square_convolution(64, 3, 1, 1));
  net.then("maxpool1", max_pooling(3, 2));
  basic_convolution(net, "Conv2d_3b_1x1", square_convolution(80, 1));
  basic_convolution(net, "Conv2d_4a_3x3", square_convolution(192, 3));
  net.then("maxpool2", max_pooling(3, 2));
  add_a(net, "Mixed_5b", 32);
  add_a(net, "Mixed_5c", 64);
  add_a(net, "Mixed_5d", 64);
  add_b(net, "Mixed_6a");
  add_c(net, "Mixed_6b", 128);
  add_c(net, "Mixed_6c", 160);
  add_c(net, "Mixed_6d", 160);
  add_c(net, "Mixed_6e", 192);
  add_d(net, "Mixed_7a");
  add_e(net, "Mixed_7b");
  add_e(net, "Mixed_7c");
  pool_all(net);
  net.then("dropout", Dropout{0.5f}).then("fc", Dense{options.classes});
  return net.finish(options.label_smoothing);
}

}  // namespace dtrain::nn
