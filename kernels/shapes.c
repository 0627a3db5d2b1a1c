/* The shapes of each op's operands (kernels.h) as machine-readable rows. An operand is name:shape, with its type if it
 * is not the op's (or f32: also in bf16 rows); written ones follow >. A side is a sum of sizes (named in the order of
 * d[] by the row's first text) and numbers; oh and ow are a window's places. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/shapes.h"
#include "kernels/window.h"

struct row {
    const char *sizes, *operands;
};

static const struct row rows[EL_OP_COUNT] = {
    [EL_OP_EMBEDDING_FORWARD] = {"n v e first of", "ids:n:i32 table:v,e > y:n,e"},
    [EL_OP_EMBEDDING_BACKWARD] = {"n v e first of", "ids:n:i32 dy:n,e > dtable:v,e:f32"},
    [EL_OP_CONV1D_FORWARD] = {"b l c f k", "x:b,l,c w:f,k,c bias:f > y:b,l-k+1,f"},
    [EL_OP_CONV1D_BACKWARD_DATA] = {"b l c f k", "dy:b,l-k+1,f w:f,k,c > dx:b,l,c"},
    [EL_OP_CONV1D_BACKWARD_WEIGHTS] = {"b l c f k", "x:b,l,c dy:b,l-k+1,f > dw:f,k,c:f32 dbias:f:f32"},
    [EL_OP_CONV2D_FORWARD] = {"b h w c f k s p", "x:b,h,w,c w:f,k,k,c > y:b,oh,ow,f"},
    [EL_OP_CONV2D_BACKWARD_DATA] = {"b h w c f k s p", "dy:b,oh,ow,f w:f,k,k,c > dx:b,h,w,c"},
    [EL_OP_CONV2D_BACKWARD_WEIGHTS] = {"b h w c f k s p", "x:b,h,w,c dy:b,oh,ow,f > dw:f,k,k,c:f32"},
    [EL_OP_LINEAR_FORWARD] = {"b i o", "x:b,i w:o,i bias:o > y:b,o"},
    [EL_OP_LINEAR_BACKWARD_DATA] = {"b i o", "dy:b,o w:o,i > dx:b,i"},
    [EL_OP_LINEAR_BACKWARD_WEIGHTS] = {"b i o", "x:b,i dy:b,o > dw:o,i:f32 dbias:o:f32"},
    [EL_OP_BATCH_NORM_FORWARD] =
        {"n c", "x:n,c scale:c:f32 shift:c:f32 residual:n,c > mean:c:f32 variance:c:f32 y:n,c saved:2,c:f32"},
    [EL_OP_BATCH_NORM_INFERENCE] = {"n c",
                                    "x:n,c scale:c:f32 shift:c:f32 residual:n,c mean:c:f32 variance:c:f32 > y:n,c"},
    [EL_OP_BATCH_NORM_BACKWARD] = {"n c",
                                   "dy:n,c x:n,c y:n,c scale:c:f32 saved:2,c:f32 > dx:n,c dscale:c:f32 dshift:c:f32 "
                                   "dresidual:n,c"},
    [EL_OP_LAYER_NORM_FORWARD] = {"n c", "x:n,c scale:c:f32 shift:c:f32 > y:n,c saved:n,2:f32"},
    [EL_OP_LAYER_NORM_BACKWARD] = {"n c", "dy:n,c x:n,c scale:c:f32 saved:n,2:f32 > dx:n,c dscale:c:f32 dshift:c:f32"},
    [EL_OP_GELU_FORWARD] = {"n", "x:n > y:n"},
    [EL_OP_GELU_BACKWARD] = {"n", "dy:n x:n > dx:n"},
    [EL_OP_ATTENTION_FORWARD] = {"b t h s", "qkv:b,t,h+h+h,s > y:b,t,h,s saved:b,h,t:f32"},
    [EL_OP_ATTENTION_BACKWARD] = {"b t h s", "dy:b,t,h,s qkv:b,t,h+h+h,s saved:b,h,t:f32 > dqkv:b,t,h+h+h,s"},
    [EL_OP_ROUTE_FORWARD] = {"b t e k first stride rows",
                             "logits:b,t,e table:rows,e:f32 > weights:b,t,k chosen:b,t,k:i32"},
    [EL_OP_ROUTE_BACKWARD] = {"b t e k", "dweights:b,t,k logits:b,t,e weights:b,t,k chosen:b,t,k:i32 > dlogits:b,t,e"},
    [EL_OP_ROUTE_PLACE] = {"b t e k m r capacity",
                           "chosen:b,t,k:i32 > place:b,t,k:i32 counts:b,e:i32 log:2,e:i32 again:b,e:i32"},
    [EL_OP_ROWS_TAKE] = {"n w k r", "x:n,w place:n,k:i32 > rows:r,w"},
    [EL_OP_ROWS_GIVE] = {"n w k r", "rows:r,w place:n,k:i32 > y:n,w"},
    [EL_OP_GROUPED_FORWARD] = {"r i o e m g", "x:r,i w:e,o,i counts:m,g,e:i32 > y:r,o"},
    [EL_OP_GROUPED_BACKWARD_DATA] = {"r i o e m g", "dy:r,o w:e,o,i counts:m,g,e:i32 > dx:r,i"},
    [EL_OP_GROUPED_BACKWARD_WEIGHTS] = {"r i o e m g", "x:r,i dy:r,o counts:m,g,e:i32 > dw:e,o,i:f32"},
    [EL_OP_SWIGLU_FORWARD] = {"r c e m g", "h:r,c+c scale:r counts:m,g,e:i32 > y:r,c"},
    [EL_OP_SWIGLU_BACKWARD] = {"r c e m g", "dy:r,c h:r,c+c scale:r counts:m,g,e:i32 > dh:r,c+c dscale:r"},
    [EL_OP_ADD_ROW] = {"r n", "x:r,n row:n > y:r,n"},
    [EL_OP_SUM_ROWS] = {"r n", "x:r,n > row:n:f32"},
    [EL_OP_RELU_BACKWARD] = {"n", "dy:n y:n > dx:n"},
    [EL_OP_MAX_TIME_FORWARD] = {"b t f", "x:b,t,f > y:b,f at:b,f:i32"},
    [EL_OP_MAX_TIME_BACKWARD] = {"b t f", "dy:b,f at:b,f:i32 > dx:b,t,f"},
    [EL_OP_MAX_POOL_FORWARD] = {"b h w c k s p", "x:b,h,w,c > y:b,oh,ow,c at:b,oh,ow,c:i32"},
    [EL_OP_MAX_POOL_BACKWARD] = {"b h w c k s p", "dy:b,oh,ow,c at:b,oh,ow,c:i32 > dx:b,h,w,c"},
    [EL_OP_MEAN_POOL_FORWARD] = {"b hw c", "x:b,hw,c > y:b,c"},
    [EL_OP_MEAN_POOL_BACKWARD] = {"b hw c", "dy:b,c > dx:b,hw,c"},
    [EL_OP_DROPOUT] = {"r n first stride run apart from", "x:r,n > y:r,n"},
    [EL_OP_COPY_COLUMNS] = {"r c ldx ldy", "x:r,c > y:r,c"},
    [EL_OP_CROSS_ENTROPY] = {"b c", "logits:b,c labels:b:i32 > loss:1:f32 dlogits:b,c"},
    [EL_OP_CROSS_ENTROPY_PIECE] = {"b c first of", "logits:b,c labels:b:i32 > part:b,3:f32"},
    [EL_OP_CROSS_ENTROPY_JOIN] = {"b c first of m", "logits:b,c labels:b:i32 parts:m,b,3:f32 > loss:1:f32 dlogits:b,c"},
    [EL_OP_MSE] = {"b c", "y:b,c labels:b:i32 > loss:1:f32 dy:b,c"},
    [EL_OP_SCALE] = {"n", "x:n > y:n"},
    [EL_OP_ADD] = {"n", "x:n > y:n"},
    [EL_OP_CAST] = {"n", "x:n > y:n"},
    [EL_OP_FILL] = {"n", "> y:n"},
    [EL_OP_SUM_SQUARES] = {"n", "x:n > sum:1:f32"},
    [EL_OP_CLIP] = {"n", "sum:1:f32 > x:n"},
    [EL_OP_SGD] = {"n", "g:n > w:n"},
    [EL_OP_MOMENTUM] = {"n", "g:n > w:n m:n:f32"},
    [EL_OP_ADAM] = {"n", "g:n > w:n m:n:f32 v:n:f32 denominator:n:f32 root:n:f32"},
    [EL_OP_MAX_NORM] = {"r n", "> w:r,n"},
};

static bool is_word(const char *word, size_t length, const char *text)
{
    return strlen(text) == length && strncmp(word, text, length) == 0;
}

/* Places of a window along a side. With filters the window is the sixth size, else the fifth. */
static int64_t places(const struct row *row, const int64_t *d, bool of_rows)
{
    bool filters = strchr(row->sizes, 'f') != NULL;
    const struct el_window window = filters ? el_window_of_conv2d(d) : el_window_of_pool(d);
    return of_rows ? window.oh : window.ow;
}

static int64_t value_of(const struct row *row, const int64_t *d, const char *word, size_t length)
{
    const char *name = row->sizes;
    if (*word >= '0' && *word <= '9') return strtoll(word, NULL, 10);
    if (is_word(word, length, "oh") || is_word(word, length, "ow")) return places(row, d, word[1] == 'h');
    for (int i = 0; i < EL_ARGS_SIZES && *name; i++) {
        size_t n = strcspn(name, " ");
        if (n == length && strncmp(name, word, n) == 0) return d[i];
        name += n + (name[n] == ' ');
    }
    return 0;
}

static int64_t side_of(const struct row *row, const int64_t *d, const char *text, size_t length)
{
    int64_t sum = 0, sign = 1;
    for (size_t at = 0; at < length;) {
        size_t n = strcspn(text + at, "+-,: ");
        if (n > length - at) n = length - at;
        sum += sign * value_of(row, d, text + at, n);
        at += n;
        sign = at < length && text[at] == '-' ? -1 : 1;
        at++;
    }
    return sum;
}

static void read_operand(const struct row *row, const char *dtype, const int64_t *d, const char *text,
                         struct el_op_operand *operand)
{
    size_t length = strcspn(text, ":");
    snprintf(operand->name, sizeof operand->name, "%.*s", (int)length, text);
    for (text += length + 1; operand->n < EL_OPERAND_SIDES;) {
        length = strcspn(text, ",: ");
        operand->d[operand->n++] = side_of(row, d, text, length);
        text += length;
        if (*text++ != ',') break;
    }
    operand->dtype = dtype;
    if (text[-1] != ':') return;
    if (*text == 'i') operand->dtype = "i32";
    if (*text == 'f' && !strcmp(dtype, "bf16")) operand->dtype = "f32";
}

static const struct row *find(const char *op)
{
    for (int i = 0; i < EL_OP_COUNT; i++)
        if (!strcmp(el_op_name(i), op)) return &rows[i];
    return NULL;
}

int el_op_operands(const char *op, const char *dtype, const int64_t *d,
                   struct el_op_operand operands_p[EL_ARGS_POINTERS])
{
    const struct row *row = find(op);
    const char *text = row ? row->operands : NULL;
    bool written = false;
    int n = 0;
    for (; text && *text && n < EL_ARGS_POINTERS; text += strspn(text, " ")) {
        size_t length = strcspn(text, " ");
        if (*text == '>') {
            written = true;
        } else {
            operands_p[n] = (struct el_op_operand){.written = written};
            read_operand(row, dtype, d, text, &operands_p[n++]);
        }
        text += length;
    }
    return n;
}

enum el_dtype el_op_operand_dtype(enum el_op_kind op, enum el_dtype dtype, const struct el_kernel_args *args,
                                  int operand)
{
    const char *text = rows[op].operands;
    for (int i = 0; i < operand && text; i++) {
        text += strcspn(text, " ");
        text += strspn(text, " >");
    }
    if (op == EL_OP_CAST && operand == 0) return (enum el_dtype)args->k[0];
    if (!text) return dtype;
    text += strspn(text, " >");
    const char *type = memchr(text, ':', strcspn(text, " "));
    type = type ? memchr(type + 1, ':', strcspn(type + 1, " ")) : NULL;
    if (type && type[1] == 'i') return EL_I32;
    return type && dtype == EL_BF16 ? EL_F32 : dtype;
}

int64_t el_operand_count(const struct el_op_operand *operand)
{
    int64_t count = 1;
    for (int i = 0; i < operand->n; i++) count *= operand->d[i];
    return count;
}
